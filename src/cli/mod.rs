//! The command line: `run`, `device`, `check`, `verify` and `bench` without a window, and the way into the desktop app.

mod args;
mod bench;
mod report;

use crate::check;
use crate::desktop;
use crate::export;
use crate::gpu::run::Progress;
use crate::gpu::{Fault, Gpu, block_on};
use crate::inputs::{self, Picture, Shown, sample_bytes};
use crate::lab::stack::{self, Stacked};
use crate::lab::{self, LabError};
use crate::methods::measure::{Weights, Window};
use crate::settings::{InputKind, KEYS};
use crate::verify;
use args::{Request, shown};
use std::fmt::Display;
use std::fs::File;
use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::ExitCode;
use std::rc::Rc;

/// A picture file with more bytes is not read.
const MAX_FILE_BYTES: u64 = 256 << 20;

/// Why the program ends early: one line and an exit code.
pub struct Failure {
    line: String,
    code: u8,
}

impl Failure {
    /// What the caller can put right: a flag, a file, a size that the device cannot hold.
    fn usage(line: &str) -> Self {
        Self { line: one_line(line), code: 2 }
    }

    /// What failed while running.
    fn fault(error: &impl Display) -> Self {
        Self { line: one_line(&error.to_string()), code: 1 }
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::fault(&fault)
    }
}

/// A driver's words may come in several lines.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Runs the program: exit code 0, 2 for a bad flag, file or size, 1 when the device fails.
pub fn main() -> ExitCode {
    quieten_drivers();
    let log = env_logger::Env::default().default_filter_or("off");
    env_logger::init_from_env(log);
    match args::parse(std::env::args_os()).and_then(act) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            tell(&failure.line);
            ExitCode::from(failure.code)
        }
    }
}

/// A line on stderr; nobody is left to tell when even that cannot be written.
fn tell(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Mesa asks the display which device to use, and complains on stderr where there is no session.
fn quieten_drivers() {
    const SESSION: &str = "XDG_RUNTIME_DIR";
    if cfg!(target_os = "linux") && std::env::var_os(SESSION).is_none() {
        // SAFETY: `main` calls this first, so that no other thread reads the environment.
        unsafe { std::env::set_var(SESSION, std::env::temp_dir()) };
    }
}

fn act(request: Request) -> Result<(), Failure> {
    match request {
        Request::Text(text) => print(&text),
        Request::Window(settings) => desktop::run(settings).map_err(|error| {
            Failure::fault(&format!("no window can be opened ({error}); attention-lab run works without one"))
        }),
        Request::Device { software, json } => {
            let gpu = pollster::block_on(Gpu::open(software))?;
            print(&if json { report::device_json(&gpu) } else { report::device_words(&gpu) })
        }
        Request::Run(request) => run(&request),
        Request::Verify(request) => verify(&request),
        Request::Check { software } => check(software),
        Request::Speed(request) => bench::speed(&request),
        Request::Soak(request) => bench::soak(&request),
    }
}

/// Prints to stdout; a reader that has read enough, such as `head`, is no error.
fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::fault(&error)),
        _ => Ok(()),
    }
}

fn run(request: &args::Run) -> Result<(), Failure> {
    let settings = &request.settings;
    let picture = picture(request)?;
    let gpu = pollster::block_on(Gpu::open(request.software))?;
    let refused = |error: LabError| match error {
        LabError::Refused(refusal) => {
            let method =
                KEYS.iter().find(|key| key.name == "method").map(|key| (key.get)(settings)).unwrap_or_default();
            Failure::usage(&format!("--method {method} --n {}: {refusal}", settings.n))
        }
        LabError::Fault(fault) => fault.into(),
        LabError::Failed(why) => Failure::fault(&why),
    };
    // Refused before an input is made.
    inputs::fits(settings).map_err(|refusal| refused(refusal.into()))?;
    let dims = inputs::dims(settings);
    lab::plan(&dims, &lab::measured(settings, &dims), gpu.limits).map_err(|refusal| refused(refusal.into()))?;
    if settings.reversible {
        stack::fits(settings, &dims, gpu.limits).map_err(|refusal| refused(refusal.into()))?;
    }
    let folder = request.out.as_deref().map(folder).transpose()?;

    let input =
        block_on(&gpu, inputs::build(settings, picture.as_ref())).map_err(|e| Failure::usage(&e.to_string()))?;
    let input = Rc::new(input);
    let progress = Progress::default();
    let mut run = block_on(&gpu, told(&progress, lab::Run::new(&gpu, settings, &input, &progress))).map_err(refused)?;
    let outcome = run.outcome.clone();

    let mut files = Vec::new();
    if let Some(folder) = folder {
        let mut write = |name: &str, encoded: Result<Vec<u8>, String>| -> Result<(), Failure> {
            let path = folder.join(name);
            let bytes = encoded.map_err(|why| cannot_write(&path, &why))?;
            export::write(&path, &bytes).map_err(|error| cannot_write(&path, &error))?;
            files.push(path);
            Ok(())
        };
        let matrix = block_on(&gpu, told(&progress, run.weight_matrix(&gpu, &progress))).map_err(refused)?;
        write("output.safetensors", export::tensors(&outcome, matrix.as_ref()))?;
        if matrix.is_none() {
            let most = lab::WHOLE_WEIGHTS_UP_TO;
            tell(&format!(
                "--n {}: output.safetensors has no attention weights, which are written up to n = {most}; \
                 --n {most} or less has them",
                settings.n
            ));
        }
        let window = Window::whole(settings.n, run.columns(Weights::Method));
        let map = block_on(&gpu, told(&progress, run.pair_map(&gpu, 0, window, &progress))).map_err(refused)?;
        write("map.png", export::map(&map))?;
        let weights = run.weight_map(&gpu, Weights::Method, 0, window, &progress);
        let weights = block_on(&gpu, told(&progress, weights)).map_err(refused)?;
        write("weights.png", export::map(&weights))?;
        if let Shown::Picture(shown) = &input.shown {
            write("output.png", export::png(shown.assemble(&outcome.mean_of_heads()).into()))?;
        }
    }
    let passage = match settings.reversible {
        true => {
            let layers = run.layers(&gpu, Stacked::of(settings), &progress);
            Some(block_on(&gpu, told(&progress, layers)).map_err(refused)?)
        }
        false => None,
    };
    if let Some(passage) = &passage {
        let words = report::layers_words(passage);
        return print(&if request.json { report::layers_json(&outcome, passage, &files) } else { words });
    }
    print(&if request.json { report::run_json(&outcome, &files) } else { report::run_words(&outcome, &files) })
}

/// Prints a line a case and the totals; exit code 1 when a case fails, 2 when there is nothing to run.
fn verify(request: &args::Verify) -> Result<(), Failure> {
    let gpu = pollster::block_on(Gpu::open(request.software))?;
    let mut cases = Vec::new();
    let mut printed = Ok(());
    let run = verify::folder(&gpu, &request.folder, &request.filter, |case, verdict| {
        if request.json {
            cases.push(report::verdict_json(&case.name, verdict));
        } else if printed.is_ok() {
            printed = print(&format!("{}\n", verify::line(&case.name, verdict)));
        }
    });
    let totals = block_on(&gpu, run).map_err(|why| Failure::usage(&why))?;
    printed?;
    // Every group is built: nothing is skipped.
    let closing = format!("{} passed, {} failed, 0 skipped", totals.passed, totals.failed);
    print(&if request.json { report::verify_json(cases, &totals) } else { format!("{closing}\n") })?;
    if totals.failed > 0 { Err(Failure::fault(&closing)) } else { Ok(()) }
}

/// Prints a line a case and the totals; exit code 1 when a case fails.
fn check(software: bool) -> Result<(), Failure> {
    let gpu = pollster::block_on(Gpu::open(software))?;
    let mut printed = Ok(());
    let progress = Progress::default();
    let run = check::run_all(&gpu, &progress, |case| {
        if printed.is_ok() {
            printed = print(&format!("{case}\n"));
        }
    });
    let summary = block_on(&gpu, run);
    printed?;
    print(&format!("{summary}\n"))?;
    if summary.failed > 0 { Err(Failure::fault(&summary)) } else { Ok(()) }
}

/// Makes the folder of the files.
fn folder(path: &Path) -> Result<PathBuf, Failure> {
    std::fs::create_dir_all(path).map_err(|error| cannot_write(path, &error))?;
    Ok(path.to_owned())
}

fn cannot_write(path: &Path, why: &dyn Display) -> Failure {
    let path = shown(&path.to_string_lossy());
    Failure::usage(&format!("--out: {path} cannot be written ({why}); allowed is a folder, new or writable"))
}

/// The photograph of the picture input; none for the others.
fn picture(request: &args::Run) -> Result<Option<Picture>, Failure> {
    if request.settings.input != InputKind::Picture {
        return Ok(None);
    }
    let Some(path) = &request.image else {
        let bytes = sample_bytes(request.settings.sample).unwrap_or_default();
        return Picture::decode(bytes).map(Some).map_err(|error| Failure::usage(&error.to_string()));
    };
    let wrong = |why: &dyn Display| {
        let path = shown(&path.to_string_lossy());
        Failure::usage(&format!("--image {path}: {why}; allowed is a PNG or JPEG file"))
    };
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes));
    read.map_err(|error| wrong(&error))?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(wrong(&"it has more than 256 MiB"));
    }
    Picture::decode(&bytes).map(Some).map_err(|error| wrong(&error))
}

/// A future that tells its progress on a terminal, on one line that it wipes at the end.
async fn told<T>(progress: &Progress, future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    if !io::stderr().is_terminal() {
        return future.await;
    }
    let mut last = String::new();
    let output = poll_fn(|context| {
        let polled = future.as_mut().poll(context);
        if let Some(step) = progress.step.get() {
            let now = format!("{} {:.0} %", step.name(), progress.fraction() * 100.0);
            if now != last {
                let _ = write!(io::stderr(), "\r{now:<40}");
                last = now;
            }
        }
        polled
    })
    .await;
    let _ = write!(io::stderr(), "\r{:40}\r", "");
    output
}
