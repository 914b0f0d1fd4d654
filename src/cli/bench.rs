//! `attention-lab bench`: what it takes from the command line and what it prints.

use super::args;
use super::report::{clock, json, table};
use super::{Failure, print};
use crate::bench::growth::{self, MARGIN, MARGIN_BYTES, Sample, Trend};
use crate::bench::soak::Soak;
use crate::bench::speed::{Row, Speed, crossover};
use crate::crossover::Crossover;
use crate::gpu::run::Clock;
use crate::gpu::{Gpu, block_on};
use crate::inputs::{Picture, sample_bytes};
use crate::lab::turns::Timed;
use crate::semantics::Choice;
use crate::settings::{InputKind, Method};
use crate::units::{bytes_in_words, grouped};
use serde::Serialize;

/// Prints the times of all methods over n, length by length, and where each overtakes full attention.
pub fn speed(request: &args::Bench<Speed>) -> Result<(), Failure> {
    let gpu = pollster::block_on(Gpu::open(request.software))?;
    let speed = &request.what;
    let picture = match speed.settings.input {
        InputKind::Picture => sample_bytes(speed.settings.sample).map(Picture::decode).transpose(),
        InputKind::Clusters | InputKind::Duplication => Ok(None),
    };
    let picture = picture.map_err(|error| Failure::fault(&error))?;
    let words = |text: String| if request.json { Ok(()) } else { print(&text) };
    words(format!(
        "milliseconds, the median of {} turns in which the methods take turns, and their ratio to full attention\nadapter {}\n\n{}",
        speed.repeats,
        gpu.info.name,
        heading()
    ))?;
    let mut rows = Vec::new();
    for n in speed.lengths() {
        let row = block_on(&gpu, speed.measure(&gpu, picture.as_ref(), n)).map_err(|why| Failure::fault(&why))?;
        words(line(&row))?;
        rows.push(row);
    }
    if request.json {
        return print(&json(&SpeedJson::of(speed, &gpu, &rows)));
    }
    print(&closing(&rows))
}

const WIDTH: usize = 17;

fn heading() -> String {
    let names: String = Method::ALL.iter().map(|(_, name)| format!("  {name:>WIDTH$}")).collect();
    format!("{:>7}{names}\n", "n")
}

fn line(row: &Row) -> String {
    let cell = |times: &Result<Timed, String>| match times {
        Ok(timed) => format!("{:.3}  x {:.2}", timed.ms, timed.ratio),
        Err(_) => "not run".to_owned(),
    };
    let cells: String = row.times.iter().map(|times| format!("  {:>WIDTH$}", cell(times))).collect();
    format!("{:>7}{cells}\n", row.n)
}

/// What measured the times; the clock on the wall where it did for any of them.
fn measured_by(rows: &[Row]) -> Clock {
    let mut timed = rows.iter().flat_map(|row| row.times.iter().flatten());
    if timed.all(|timed| timed.clock == Clock::Timestamps) { Clock::Timestamps } else { Clock::Wall }
}

fn closing(rows: &[Row]) -> String {
    let mut text = format!("\ntime {}\n", by(measured_by(rows)));
    for (at, (method, name)) in Method::ALL.iter().enumerate() {
        let refused = rows.iter().find_map(|row| Some((row.n, row.times.get(at)?.as_ref().err()?)));
        if let Some((n, why)) = refused {
            text.push_str(&format!("{name}: not run at n = {n}: {why}\n"));
        }
        if *method != Method::Full
            && let (Some(found), Some(first), Some(last)) = (crossover(rows, *method), rows.first(), rows.last())
        {
            text.push_str(&format!("{name}: {}\n", overtakes(found, first.n, last.n)));
        }
    }
    text
}

fn overtakes(found: Crossover, first: u32, last: u32) -> String {
    match found {
        Crossover::Always => format!("faster than full attention at every length measured, {first} to {last}"),
        Crossover::Between { behind, ahead, at } => format!(
            "the crossover lies at about n = {at:.0}, between n = {behind}, where it is not faster than full attention, \
             and n = {ahead}, from where on it is at every length measured"
        ),
        Crossover::Never => format!("not faster than full attention at the longest length measured, {last}"),
    }
}

fn by(measured_by: Clock) -> &'static str {
    match measured_by {
        Clock::Timestamps => "by the device's timestamps",
        Clock::Wall => "by the clock on the wall",
    }
}

#[derive(Serialize)]
struct SpeedJson<'a> {
    adapter: &'a str,
    clock: &'static str,
    repeats: u32,
    settings: String,
    times: Vec<TimesJson<'a>>,
    crossovers: Vec<CrossoverJson>,
}

#[derive(Serialize)]
struct TimesJson<'a> {
    n: u32,
    method: &'static str,
    ms: Option<f64>,
    least: Option<f64>,
    most: Option<f64>,
    ratio: Option<f64>,
    why_not: Option<&'a str>,
}

/// A method that overtakes full attention between two lengths; null is before the first and after
/// the last that was measured.
#[derive(Serialize)]
struct CrossoverJson {
    method: &'static str,
    slower_up_to: Option<u32>,
    faster_from: Option<u32>,
    /// Where both take the same; null where that does not lie between two lengths.
    about: Option<f64>,
}

impl<'a> SpeedJson<'a> {
    fn of(speed: &Speed, gpu: &'a Gpu, rows: &'a [Row]) -> Self {
        let cell = |n: u32, method: Method, times: &'a Result<Timed, String>| {
            let of = |read: fn(&Timed) -> f64| times.as_ref().ok().map(read);
            TimesJson {
                n,
                method: method.spelling(),
                ms: of(|times| times.ms),
                least: of(|times| times.least),
                most: of(|times| times.most),
                ratio: of(|times| times.ratio),
                why_not: times.as_ref().err().map(String::as_str),
            }
        };
        let times = rows
            .iter()
            .flat_map(|row| Method::ALL.iter().zip(&row.times).map(|((method, _), times)| cell(row.n, *method, times)));
        let crossovers =
            Method::ALL.iter().filter(|(method, _)| *method != Method::Full).filter_map(|(method, name)| {
                let (slower_up_to, faster_from, about) = match crossover(rows, *method)? {
                    Crossover::Always => (None, rows.first().map(|row| row.n), None),
                    Crossover::Between { behind, ahead, at } => (Some(behind), Some(ahead), Some(at)),
                    Crossover::Never => (rows.last().map(|row| row.n), None, None),
                };
                Some(CrossoverJson { method: name, slower_up_to, faster_from, about })
            });
        Self {
            adapter: &gpu.info.name,
            clock: clock(measured_by(rows)),
            repeats: speed.repeats,
            settings: speed.settings.to_query(),
            times: times.collect(),
            crossovers: crossovers.collect(),
        }
    }
}

/// Plays with the sliders and prints memory as it goes; exit code 1 when it grew.
pub fn soak(request: &args::Bench<Soak>) -> Result<(), Failure> {
    let gpu = pollster::block_on(Gpu::open(request.software))?;
    let adapter = gpu.info.name.clone();
    let mut printed = Ok(());
    let mut words = |text: String| {
        if !request.json && printed.is_ok() {
            printed = print(&text);
        }
    };
    words(format!(
        "adapter {adapter}; memory is read at rest, on the settings that the game began with\n\n{}",
        sample_heading()
    ));
    let samples =
        request.what.play(gpu, |sample| words(sample_line(sample))).map_err(|fault| Failure::fault(&fault))?;
    printed?;
    let trends = growth::trends(&samples);
    let grown: Vec<&str> = trends.iter().filter(|trend| trend.grew()).map(|trend| trend.name).collect();
    let margin = format!("{:.0} % or {}", MARGIN * 100.0, bytes_in_words(MARGIN_BYTES));
    let verdict = if grown.is_empty() {
        format!("no growth beyond {margin} from the first quarter to the last")
    } else {
        format!("{} grew by more than {margin} from the first quarter to the last", grown.join(" and "))
    };
    if request.json {
        print(&json(&SoakJson::of(&request.what, &adapter, &samples, &trends, &verdict)))?;
    } else {
        print(&format!("\n{}\n{verdict}\n", trend_table(&trends, samples.last())))?;
    }
    if grown.is_empty() { Ok(()) } else { Err(Failure::fault(&verdict)) }
}

fn sample_heading() -> String {
    let names = [
        "minutes",
        "moves",
        "results",
        "answers",
        "cancels",
        "heap",
        "resident",
        "ledger",
        "allocated",
        "reserved",
        "pipelines",
    ];
    names.map(|name| format!("{name:>11}")).concat() + "\n"
}

fn sample_line(sample: &Sample) -> String {
    let bytes = |bytes: Option<u64>| bytes.map_or_else(|| "not told".to_owned(), bytes_in_words);
    let cells = [
        format!("{:.1}", sample.seconds / 60.0),
        grouped(sample.moves),
        grouped(sample.results),
        grouped(sample.answers),
        grouped(sample.cancels),
        bytes(sample.heap),
        bytes(sample.resident),
        bytes(Some(sample.ledger)),
        bytes(sample.allocated),
        bytes(sample.reserved),
        grouped(sample.pipelines),
    ];
    cells.map(|cell| format!("{cell:>11}")).concat() + "\n"
}

fn trend_table(trends: &[Trend], last: Option<&Sample>) -> String {
    let mut rows = vec![["median of", "first quarter", "last quarter", "change"].map(str::to_owned).to_vec()];
    rows.extend(trends.iter().map(|trend| {
        let change = trend.last - trend.first;
        let sign = if change < 0.0 { "-" } else { "+" };
        vec![
            trend.name.to_owned(),
            bytes_in_words(trend.first as u64),
            bytes_in_words(trend.last as u64),
            format!("{sign}{}", bytes_in_words(change.abs() as u64)),
        ]
    }));
    let played = last.map_or_else(String::new, |last| {
        format!(
            "{} moves, {} results, {} answers, {} cancels, {} times out of memory\n",
            grouped(last.moves),
            grouped(last.results),
            grouped(last.answers),
            grouped(last.cancels),
            last.shortages
        )
    });
    table(&rows, &[1, 2, 3]) + &played
}

#[derive(Serialize)]
struct SoakJson<'a> {
    adapter: &'a str,
    seed: u32,
    settings: String,
    samples: Vec<SampleJson>,
    quarters: Vec<TrendJson>,
    verdict: &'a str,
}

#[derive(Serialize)]
struct SampleJson {
    seconds: f64,
    moves: u64,
    results: u64,
    answers: u64,
    cancels: u64,
    out_of_memory: u64,
    heap_bytes: Option<u64>,
    resident_bytes: Option<u64>,
    ledger_bytes: u64,
    allocated_bytes: Option<u64>,
    reserved_bytes: Option<u64>,
    pipelines: u64,
}

#[derive(Serialize)]
struct TrendJson {
    name: &'static str,
    first: f64,
    last: f64,
    margin: f64,
    grew: bool,
}

impl<'a> SoakJson<'a> {
    fn of(soak: &Soak, adapter: &'a str, samples: &[Sample], trends: &[Trend], verdict: &'a str) -> Self {
        let sample = |sample: &Sample| SampleJson {
            seconds: sample.seconds,
            moves: sample.moves,
            results: sample.results,
            answers: sample.answers,
            cancels: sample.cancels,
            out_of_memory: sample.shortages,
            heap_bytes: sample.heap,
            resident_bytes: sample.resident,
            ledger_bytes: sample.ledger,
            allocated_bytes: sample.allocated,
            reserved_bytes: sample.reserved,
            pipelines: sample.pipelines,
        };
        let trend = |trend: &Trend| TrendJson {
            name: trend.name,
            first: trend.first,
            last: trend.last,
            margin: trend.margin(),
            grew: trend.grew(),
        };
        Self {
            adapter,
            seed: soak.seed,
            settings: soak.settings.to_query(),
            samples: samples.iter().map(sample).collect(),
            quarters: trends.iter().map(trend).collect(),
            verdict,
        }
    }
}
