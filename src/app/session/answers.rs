//! What the views ask, and the answers that are known.

use crate::app::scene::{Answer, Question};
use crate::app::stage::Subject;
use crate::text::{self, Text};

/// Answers kept for a view that asks again. What is asked now is kept, however much it is.
const KEPT: usize = 32;

#[derive(Default)]
pub struct Answers {
    /// Asked by the views of the last frame, oldest first.
    asked: Vec<Question>,
    known: Vec<(Question, Answer)>,
    /// Cancelled, which holds as long as they go on being asked.
    cancelled: Vec<Question>,
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
        self.cancelled.retain(|question| questions.contains(question));
    }

    /// Leaves all that is open unanswered, until somebody asks anew.
    pub fn cancel(&mut self) {
        let open: Vec<Question> = self.asked.iter().filter(|question| self.get(question).is_none()).copied().collect();
        self.cancelled.extend(open);
    }

    pub fn is_cancelled(&self) -> bool {
        !self.cancelled.is_empty()
    }

    /// Opens again what was cancelled or failed.
    pub fn ask_anew(&mut self) {
        self.cancelled.clear();
        self.known.retain(|(_, answer)| !matches!(answer, Answer::Failed(_)));
    }

    pub fn is_asked(&self, question: &Question) -> bool {
        self.asked.contains(question)
    }

    /// The newest question without an answer.
    pub fn open(&self) -> Option<Question> {
        self.asked.iter().rev().find(|question| self.get(question).is_none()).copied()
    }

    pub fn get(&self, question: &Question) -> Option<Answer> {
        if self.cancelled.contains(question) {
            return Some(Answer::Failed(text::sentence(Text::Cancelled.get())));
        }
        self.known.iter().rev().find(|(known, _)| known == question).map(|(_, answer)| answer.clone())
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

    /// Forgets answers about anything else, and questions, too: heads and queries of another subject may not be there.
    /// Views that still want to know ask again.
    pub fn turn_to(&mut self, subject: Option<Subject>) {
        if subject != self.subject {
            self.asked.retain(Question::stands_alone);
            let holds = |answer: &Answer| !matches!(answer, Answer::Failed(_));
            self.known.retain(|(question, answer)| question.stands_alone() && holds(answer));
            self.cancelled.clear();
            self.subject = subject;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs;
    use crate::settings::{InputKind, Settings};
    use crate::tables::Sizes;
    use std::rc::Rc;

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

    #[test]
    fn a_question_about_another_subject_is_not_asked_about_this_one() {
        let subject = |heads: u32| {
            let settings = Settings { input: InputKind::Clusters, n: 16, d: 4, heads, ..Settings::default() };
            let input = pollster::block_on(inputs::build(&settings, None)).expect("an input");
            Some(Subject { settings, input: Rc::new(input) })
        };
        let (four, one) = (subject(4), subject(1));
        let alone = Question::Savings { sizes: Sizes::default() };
        let last_head = Question::LowRank { head: 3, random: false };
        let mut answers = Answers::default();
        answers.turn_to(four.clone());
        answers.ask(&[alone, last_head]);
        answers.turn_to(four);
        assert_eq!(answers.open(), Some(last_head), "of the same subject");
        answers.turn_to(one);
        assert_eq!(answers.open(), Some(alone));
        answers.ask(&[alone, Question::LowRank { head: 0, random: false }]);
        assert_eq!(answers.open(), Some(Question::LowRank { head: 0, random: false }));
    }

    #[test]
    fn what_was_cancelled_is_answered_when_somebody_asks_anew() {
        let mut answers = Answers::default();
        let both = [row(0), row(1)];
        answers.ask(&both);
        answers.keep(row(0), Answer::Accuracy(None));
        answers.cancel();
        for _ in 0..3 {
            answers.ask(&both);
            assert_eq!((answers.open(), answers.is_cancelled()), (None, true));
        }
        assert!(matches!(answers.get(&row(0)), Some(Answer::Accuracy(None))), "what there is stays");
        assert!(matches!(answers.get(&row(1)), Some(Answer::Failed(_))));
        answers.ask_anew();
        assert_eq!(answers.open(), Some(row(1)));
        // A view that is left and come back to asks anew, too.
        answers.cancel();
        answers.ask(&[]);
        answers.ask(&both);
        assert_eq!((answers.open(), answers.is_cancelled()), (Some(row(1)), false));
        // So does somebody after a failure, but not the next frame.
        answers.keep(row(1), Answer::Failed("No.".to_owned()));
        answers.ask(&both);
        assert_eq!(answers.open(), None);
        answers.ask_anew();
        assert_eq!(answers.open(), Some(row(1)));
    }
}
