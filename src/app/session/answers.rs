//! What the views ask, and the answers that are known.

use crate::app::scene::{Answer, Question};
use crate::app::stage::Subject;

/// Answers kept for a view that asks again. What is asked now is kept, however much it is.
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
        while self.known.len() >= KEPT
            && let Some(oldest) = self.known.iter().position(|(known, _)| !self.asked.contains(known))
        {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn row(query: u32) -> Question {
        Question::Row { head: 0, query }
    }

    /// Answers what is open until nothing is, as a worker does; how often it did.
    fn answer_all(answers: &mut Answers) -> usize {
        (0..1000)
            .take_while(|_| {
                let open = answers.open();
                if let Some(question) = open {
                    answers.keep(question, Answer::Accuracy(None));
                }
                open.is_some()
            })
            .count()
    }

    #[test]
    fn more_questions_than_are_kept_are_answered_once_each() {
        let mut answers = Answers::default();
        let questions: Vec<Question> = (0..40).map(row).collect();
        answers.ask(&questions);
        assert_eq!(answer_all(&mut answers), 40);
        // They make room when nobody asks them any more.
        answers.ask(&[row(100)]);
        assert_eq!(answer_all(&mut answers), 1);
        assert_eq!(questions.iter().filter(|question| answers.get(question).is_some()).count(), KEPT - 1);
    }
}
