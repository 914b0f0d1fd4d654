//! What the views ask, and the answers that are known.

use crate::app::scene::{Answer, Question};
use crate::app::stage::Subject;

/// Answers kept for a view that asks again.
const KEPT: usize = 32;

#[derive(Default)]
pub struct Answers {
    /// Asked by the views of the last frame, oldest first.
    asked: Vec<Question>,
    known: Vec<(Question, Answer)>,
    /// What they are about.
    subject: Option<Subject>,
}

impl Answers {
    /// Takes the questions of a frame; others are forgotten.
    pub fn ask(&mut self, questions: &[Question]) {
        self.asked.retain(|question| questions.contains(question));
        for question in questions {
            if !self.asked.contains(question) {
                self.asked.push(*question);
            }
        }
    }

    pub fn is_asked(&self, question: &Question) -> bool {
        self.asked.contains(question)
    }

    /// The newest question without an answer.
    pub fn open(&self) -> Option<Question> {
        self.asked.iter().rev().find(|question| self.get(question).is_none()).copied()
    }

    pub fn get(&self, question: &Question) -> Option<&Answer> {
        self.known.iter().rev().find(|(known, _)| known == question).map(|(_, answer)| answer)
    }

    pub fn keep(&mut self, question: Question, answer: Answer) {
        self.known.retain(|(known, _)| !question.supersedes(known));
        if self.known.len() >= KEPT {
            let oldest = self.known.iter().position(|(known, _)| !self.asked.contains(known)).unwrap_or(0);
            self.known.remove(oldest);
        }
        self.known.push((question, answer));
    }

    /// Forgets answers about anything else.
    pub fn turn_to(&mut self, subject: Option<Subject>) {
        if subject != self.subject {
            let holds = |answer: &Answer| !matches!(answer, Answer::Failed(_));
            self.known.retain(|(question, answer)| question.stands_alone() && holds(answer));
            self.subject = subject;
        }
    }
}
