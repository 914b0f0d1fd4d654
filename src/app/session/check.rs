//! The check of the device, as one of the things that wait for their turn.

use super::Session;
use crate::app::job::{Checked, Exam};

/// The check of the device.
pub(super) enum Check {
    /// Waits for its turn or runs. New settings go first, and then it starts over.
    Asked(Exam),
    Done(Checked),
}

impl Session {
    /// Checks this device, once the newest settings have their result.
    pub fn check(&mut self, exam: Exam) {
        // It goes before the other methods.
        self.task = None;
        self.check = Some(Check::Asked(exam));
        self.resume();
    }

    /// True until the check that was asked for is done.
    pub fn is_checking(&self) -> bool {
        self.checking().is_some()
    }

    /// What it is checked on, until that is done.
    pub fn checking(&self) -> Option<&Exam> {
        if let Some(Check::Asked(exam)) = &self.check { Some(exam) } else { None }
    }

    /// What the last check found.
    pub fn checked(&self) -> Option<&Checked> {
        if let Some(Check::Done(checked)) = &self.check { Some(checked) } else { None }
    }

    /// Forgets what the last check found.
    pub fn forget_check(&mut self) {
        self.check = None;
    }
}
