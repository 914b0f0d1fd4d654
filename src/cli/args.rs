//! The flags: one for each of [`KEYS`], read by the same parser as an address, and a few that are
//! no settings.

use super::Failure;
use crate::bench::soak::Soak;
use crate::bench::speed::Speed;
use crate::presets::Preset;
use crate::settings::{InputKind, KEYS, Key, MAX_N, Sample, Settings, SettingsError};
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::ffi::OsString;
use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// What a command line asks for.
pub enum Request {
    /// The desktop app; `None` when no setting is given, so that it may choose.
    Window(Option<Settings>),
    Device {
        software: bool,
        json: bool,
    },
    Run(Run),
    Verify(Verify),
    /// Every step against its twin.
    Check {
        software: bool,
    },
    Speed(Bench<Speed>),
    Soak(Bench<Soak>),
    /// The help or the version, to be printed.
    Text(String),
}

/// `attention-lab run`.
pub struct Run {
    pub settings: Settings,
    /// The picture of `sample=own`.
    pub image: Option<PathBuf>,
    /// The folder that takes the files.
    pub out: Option<PathBuf>,
    pub software: bool,
    pub json: bool,
}

/// `attention-lab verify`.
pub struct Verify {
    /// The folder with a manifest.json.
    pub folder: PathBuf,
    /// Part of the names of the cases wanted.
    pub filter: String,
    pub software: bool,
    pub json: bool,
}

/// `attention-lab bench`.
pub struct Bench<T> {
    pub what: T,
    pub software: bool,
    pub json: bool,
}

/// Reads a command line, the program's name included.
///
/// # Errors
/// The first flag that cannot be read or does not go with another, in one line.
pub fn parse(args: impl Iterator<Item = OsString>) -> Result<Request, Failure> {
    let matches = match command().try_get_matches_from(args) {
        Ok(matches) => matches,
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            return Ok(Request::Text(error.render().to_string()));
        }
        Err(error) => return Err(Failure::usage(&sentence(&error))),
    };
    Ok(match matches.subcommand() {
        Some(("device", matches)) => {
            Request::Device { software: matches.get_flag("software"), json: matches.get_flag("json") }
        }
        Some(("check", matches)) => Request::Check { software: matches.get_flag("software") },
        Some(("verify", matches)) => Request::Verify(Verify {
            folder: matches.get_one::<PathBuf>("folder").cloned().unwrap_or_default(),
            filter: matches.get_one::<String>("filter").cloned().unwrap_or_default(),
            software: matches.get_flag("software"),
            json: matches.get_flag("json"),
        }),
        Some(("bench", matches)) => match matches.subcommand() {
            Some(("soak", matches)) => Request::Soak(benched(matches, soak(matches)?)),
            Some((_, matches)) => Request::Speed(benched(matches, speed(matches)?)),
            None => return Err(Failure::usage("bench: allowed are speed and soak")),
        },
        Some((_, matches)) => Request::Run(run(matches)?),
        None => {
            let any = matches.contains_id(Preset::NAME) || KEYS.iter().any(|key| matches.contains_id(key.name));
            let settings = settings(&matches, Settings::default())?;
            Request::Window(any.then_some(settings))
        }
    })
}

fn command() -> Command {
    let switch = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).help(help).action(ArgAction::SetTrue).help_heading("Other")
    };
    let path = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .value_name(value)
            .help(help)
            .value_parser(clap::value_parser!(PathBuf))
            .help_heading("Other")
    };
    let software = || switch("software", "Compute on the CPU if there is a driver for it");
    let json = || switch("json", "Print one JSON object");
    Command::new("attention-lab")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Reformer's LSH attention and Linformer, live on the GPU. Without a command the desktop app opens.")
        .arg(preset())
        .args(KEYS.iter().map(flag))
        .args_conflicts_with_subcommands(true)
        .disable_help_subcommand(true)
        .subcommand(Command::new("device").about("Say what computes, and its limits").args([software(), json()]))
        .subcommand(
            Command::new("check")
                .about("Run every step on the device and hold it against its float64 twin")
                .arg(software()),
        )
        .subcommand(
            Command::new("verify")
                .about("Hold the results against outputs of published implementations")
                .arg(
                    Arg::new("folder")
                        .value_name("FOLDER")
                        .help("A folder with a manifest.json and one .safetensors file a case")
                        .value_parser(clap::value_parser!(PathBuf))
                        .required(true),
                )
                .arg(Arg::new("filter").long("filter").value_name("TEXT").help("Only cases whose name contains this"))
                .args([software(), json()]),
        )
        .subcommand(bench_command([software(), json()]))
        .subcommand(
            Command::new("run")
                .about("Run one method without a window and print its figures")
                .arg(preset())
                .args(KEYS.iter().map(flag))
                .args([
                    path("image", "FILE", "A PNG or JPEG file as the picture input"),
                    path(
                        "out",
                        "FOLDER",
                        "Write output.safetensors (out, lse, weights up to n = 1024, buckets and order of LSH), \
                         map.png, weights.png and output.png into this folder",
                    ),
                    software(),
                    json(),
                ]),
        )
}

fn bench_command(other: [Arg; 2]) -> Command {
    let number = |name: &'static str, default: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name("NUMBER").default_value(default).help(help).help_heading("Other")
    };
    // The lengths and the methods are what is compared.
    let settings = || KEYS.iter().filter(|key| !["n", "method"].contains(&key.name)).map(flag);
    Command::new("bench")
        .about("Measure what no test can assert")
        .subcommand_required(true)
        .disable_help_subcommand(true)
        .subcommand(
            Command::new("speed")
                .about("Milliseconds of every method over n, and where each overtakes full attention")
                .arg(preset())
                .args(settings())
                .args([
                    number("from", "128", "The first length; it doubles from one to the next"),
                    number("to", "4096", "The last length at most"),
                    number("repeats", "7", "Turns at each length"),
                ])
                .args(other.clone()),
        )
        .subcommand(
            Command::new("soak")
                .about("Play with the sliders at full speed and watch memory; exit code 1 when it grows")
                .args([
                    number("minutes", "60", "How long"),
                    number("samples", "60", "How often memory is read"),
                    number("seed", "1", "Seed of the game"),
                ])
                .args(other),
        )
}

/// The flag that writes many settings at once.
fn preset() -> Arg {
    Arg::new(Preset::NAME)
        .long(Preset::NAME)
        .value_name("NAME")
        .help(format!(
            "The rules of the paper or of a published code, which other flags override: {}",
            Preset::allowed()
        ))
        .help_heading("Settings")
}

/// The flag of a setting; one that can be true may stand without a value.
fn flag(key: &Key) -> Arg {
    let default = (key.get)(&Settings::default());
    let flag = Arg::new(key.name)
        .long(key.name)
        .value_name("VALUE")
        .help(format!("{}: {} [default: {default}]", key.help.get(), (key.allowed)()))
        .help_heading("Settings");
    if (key.set)(&mut Settings::default(), "true") {
        flag.num_args(0..=1).default_missing_value("true")
    } else {
        flag.allow_hyphen_values(true)
    }
}

fn settings(matches: &ArgMatches, mut settings: Settings) -> Result<Settings, Failure> {
    let names = std::iter::once(Preset::NAME).chain(KEYS.iter().map(|key| key.name));
    // `bench` has not all of them.
    let given = |name| matches.try_get_one::<String>(name).ok().flatten();
    let pairs = names.filter_map(|name| Some((name, given(name)?.as_str())));
    settings.write(pairs).map_err(|error| wrong(&error))?;
    Ok(settings)
}

fn run(matches: &ArgMatches) -> Result<Run, Failure> {
    let image: Option<PathBuf> = matches.get_one("image").cloned();
    let own = Settings { input: InputKind::Picture, sample: Sample::Own, ..Settings::default() };
    let settings = settings(matches, if image.is_some() { own } else { Settings::default() })?;
    let takes_own = settings.input == InputKind::Picture && settings.sample == Sample::Own;
    match &image {
        Some(path) if !takes_own => {
            let path = shown(&path.to_string_lossy());
            return Err(Failure::usage(&format!("--image {path}: allowed only with --input picture and --sample own")));
        }
        None if takes_own => return Err(Failure::usage("--sample own: allowed only with --image FILE")),
        _ => {}
    }
    Ok(Run {
        settings,
        image,
        out: matches.get_one("out").cloned(),
        software: matches.get_flag("software"),
        json: matches.get_flag("json"),
    })
}

fn benched<T>(matches: &ArgMatches, what: T) -> Bench<T> {
    Bench { what, software: matches.get_flag("software"), json: matches.get_flag("json") }
}

/// A number of `bench`, which always has one.
fn number<T>(matches: &ArgMatches, flag: &str, low: T, high: T) -> Result<T, Failure>
where
    T: FromStr + PartialOrd + Display,
{
    let text = matches.get_one::<String>(flag).map_or("", String::as_str);
    let value = text.parse().ok().filter(|value| (&low..=&high).contains(&value));
    value.ok_or_else(|| Failure::usage(&format!("--{flag} {}: allowed is {low} to {high}", shown(text))))
}

fn speed(matches: &ArgMatches) -> Result<Speed, Failure> {
    let settings = settings(matches, Settings::default())?;
    if settings.input == InputKind::Picture && settings.sample == Sample::Own {
        return Err(Failure::usage("--sample own: bench has no picture of yours; allowed are astronaut and cat"));
    }
    let from = number(matches, "from", 1, MAX_N)?;
    let to = number(matches, "to", from, MAX_N)?;
    Ok(Speed { settings, from, to, repeats: number(matches, "repeats", 1, 1000)? })
}

fn soak(matches: &ArgMatches) -> Result<Soak, Failure> {
    let minutes: f64 = number(matches, "minutes", 0.1, 10_000.0)?;
    Ok(Soak {
        duration: Duration::from_secs_f64(minutes * 60.0),
        seed: number(matches, "seed", 0, u32::MAX)?,
        settings: Settings { n: 1024, ..Settings::default() },
        samples: number(matches, "samples", 4, 10_000)?,
    })
}

fn wrong(error: &SettingsError) -> Failure {
    Failure::usage(&SettingsError { value: shown(&error.value), ..error.clone() }.to_string())
}

/// A value as it stands in a message: quoted when it could be misread, cut when it is long.
pub fn shown(value: &str) -> String {
    const LONGEST: usize = 80;
    let mut cut: String = value.chars().take(LONGEST).collect();
    if cut.len() < value.len() {
        cut.push_str("...");
    }
    let plain = !cut.is_empty() && !cut.contains(|c: char| c.is_whitespace() || c.is_control());
    if plain { cut } else { format!("{cut:?}") }
}

/// What clap says over several lines, as one.
fn sentence(error: &Error) -> String {
    let said = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        Some(ContextValue::Strings(texts)) => texts.first().map(String::as_str),
        _ => None,
    };
    // clap writes `--n <VALUE>`.
    let name = |text: &str| shown(text.split(" <").next().unwrap_or(text).trim_end_matches([' ', '[']));
    let allowed = |flag: &str| {
        let key = KEYS.iter().find(|key| flag.strip_prefix("--") == Some(key.name));
        key.map_or_else(|| "one value".to_owned(), |key| (key.allowed)())
    };
    match (error.kind(), said(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(flag)) => {
            let meant = said(ContextKind::SuggestedArg).map_or_else(String::new, |other| format!(", perhaps {other}"));
            format!("{}: no such flag{meant}; allowed is what attention-lab run --help lists", name(flag))
        }
        (ErrorKind::ArgumentConflict, Some(flag)) => {
            let flag = name(flag);
            format!("{flag} is given more than once: allowed is once, with {}", allowed(&flag))
        }
        (ErrorKind::InvalidValue, Some(flag)) => {
            let flag = name(flag);
            format!("{flag} has no value: allowed is {}", allowed(&flag))
        }
        (ErrorKind::InvalidSubcommand, _) => {
            let command = shown(said(ContextKind::InvalidSubcommand).unwrap_or_default());
            format!(
                "{command}: no such command; allowed are run, device, check, verify, bench, or none for the desktop app"
            )
        }
        _ => {
            let text = error.render().to_string();
            let first = text.lines().next().unwrap_or_default();
            first.strip_prefix("error: ").unwrap_or(first).to_owned()
        }
    }
}
