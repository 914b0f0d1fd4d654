//! A fit of Linformer's projections stays where it is while people look elsewhere. What is asked here is what
//! the Projection view asks; whether a fit went on or began anew shows in the ledger of buffers.
#![cfg(not(target_arch = "wasm32"))]

use attention_lab::app::scene::{Answer, Question};
use attention_lab::app::session::{Again, Session};
use attention_lab::gpu::Gpu;
use attention_lab::lab::{Fitted, Start};
use attention_lab::methods::fit::Loss;
use attention_lab::settings::{InputKind, Method, Settings};
use std::rc::Rc;

const K: u32 = 16;
const START: Start = Start { head: 0, k: K, loss: Loss::Output, rate: 30 };

fn open() -> Session {
    let gpu = pollster::block_on(Gpu::open(true)).expect("a software Vulkan driver");
    let mut session = Session::new(gpu, settings(Method::Linformer), &egui::Context::default());
    rest(&mut session);
    session
}

fn settings(method: Method) -> Settings {
    Settings { n: 200, d: 16, k: Some(K), input: InputKind::Clusters, method, ..Settings::default() }
}

fn rest(session: &mut Session) {
    loop {
        match session.poll() {
            Again::Never => break,
            Again::NextFrame => {}
            Again::After(wait) => std::thread::sleep(wait),
        }
    }
    assert!(session.fault().is_none() && session.failure().is_none());
}

fn fit(until: u32) -> Question {
    Question::Fit { start: START, until }
}

/// Asks as a view does, frame after frame, until the answer is there.
fn fitted(session: &mut Session, until: u32) -> Rc<Fitted> {
    session.ask(&[fit(until)]);
    rest(session);
    answered(session, until).expect("a fit")
}

fn answered(session: &Session, until: u32) -> Option<Rc<Fitted>> {
    match session.answer(fit(until))? {
        Answer::Fit(fitted) => Some(fitted),
        _ => None,
    }
}

/// Where the target of the fit stands among all buffers by age; a fit that begins anew has the youngest.
fn place(session: &Session) -> Option<usize> {
    session.gpu().ledger.entries().iter().position(|(name, _)| *name == "fit target")
}

#[test]
fn a_fit_stays_when_its_view_is_left() {
    let mut session = open();
    assert_eq!(place(&session), None);
    let few = fitted(&mut session, 5);
    let at = place(&session);
    assert!(at.is_some());

    // The view is left while the next steps are computed.
    session.ask(&[fit(400)]);
    while session.running().is_none() {
        session.poll();
    }
    session.ask(&[]);
    rest(&mut session);
    let many = answered(&session, 400).expect("what had begun is seen through");
    assert_eq!((many.losses.len(), &many.losses[..5]), (400, &few.losses[..]));
    assert_eq!(place(&session), at, "it went on");

    // Another view asks a question of its own.
    session.ask(&[Question::Sparsity { head: 0 }]);
    rest(&mut session);
    assert_eq!(fitted(&mut session, 420).losses[..400], many.losses[..]);
    assert_eq!(place(&session), at, "it still went on");
}

#[test]
fn a_fit_stays_until_settings_touch_it() {
    let mut session = open();
    let few = fitted(&mut session, 20);
    let target = |session: &Session| place(session).is_some();

    // Another method runs in place of Linformer, whose outcome, which was fitted to, stays.
    session.ask(&[]);
    session.change(Settings { rounds: 7, ..settings(Method::Lsh) });
    rest(&mut session);
    let at = place(&session);
    assert!(at.is_some());
    session.change(settings(Method::Linformer));
    rest(&mut session);
    let more = fitted(&mut session, 30);
    assert_eq!((&more.losses[..20], place(&session)), (&few.losses[..], at));

    // Another start is another fit, in place of this one.
    session.ask(&[Question::Fit { start: Start { rate: 31, ..START }, until: 1 }]);
    rest(&mut session);
    assert!(target(&session) && place(&session) != at);

    session.ask(&[]);
    session.change(Settings { seed: 7, ..settings(Method::Linformer) });
    assert!(!target(&session), "new settings forget it at once");
    rest(&mut session);
    assert!(fitted(&mut session, 20).losses != few.losses, "another input");
}
