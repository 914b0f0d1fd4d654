fn main() -> eframe::Result {
    attention_lab::desktop::run(None)
}
