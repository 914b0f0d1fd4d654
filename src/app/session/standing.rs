//! How the work stands, and what the views see of it.

use super::Session;
use crate::app::job::Job;
use crate::app::scene::{Answer, Missing, Question, Scene};
use crate::app::stage::{family, slot};
use crate::gpu::Fault;
use crate::gpu::run::Progress;
use crate::settings::Method;
use std::time::Duration;

/// How the result for the newest settings stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stands {
    Running,
    Done,
    Cancelled,
    /// There is no input, or the device failed.
    Failed,
}

impl Session {
    /// What went wrong with the device.
    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    /// Why there is no input for the newest settings.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// True while the screen shows the result of earlier settings.
    pub fn is_old(&self) -> bool {
        self.next.is_some()
    }

    /// How the result for the newest settings stands.
    pub fn stands(&self) -> Stands {
        if self.fault.is_some() || self.failure.is_some() {
            Stands::Failed
        } else if self.cancelled || (!self.is_old() && self.answers.is_cancelled()) {
            Stands::Cancelled
        } else if self.is_old() {
            Stands::Running
        } else {
            Stands::Done
        }
    }

    /// What runs, how far it is, and for how long one job has followed the other.
    pub fn running(&self) -> Option<(Job, &Progress, Duration)> {
        let busy = self.busy_since.map_or(Duration::ZERO, |since| since.elapsed());
        self.task.as_ref().map(|task| (task.job, &*task.progress, busy))
    }

    /// What the views look at; `None` before the first result.
    pub fn scene<'a>(&'a self, answer: &'a dyn Fn(Question) -> Option<Answer>) -> Option<Scene<'a>> {
        let stage = self.shown.as_ref()?;
        let outcome = |method: Method| match &stage.slots[slot(method)] {
            Ok(outcome) => Ok(outcome),
            Err(Missing::Soon) if self.cancelled => Err(&self.cancelled_slot),
            Err(missing) => Err(missing),
        };
        Some(Scene {
            settings: &stage.settings,
            input: stage.input.as_ref()?,
            method: family(stage.settings.method),
            full: outcome(Method::Full),
            lsh: outcome(Method::Lsh),
            linformer: outcome(Method::Linformer),
            answer,
            limits: self.gpu.limits,
            token: None,
            locked: false,
            head: 0,
            round: 0,
            adapter: &self.gpu.info.name,
            software: self.gpu.is_software(),
        })
    }
}
