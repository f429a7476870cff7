//! What a container uses, by asking its engine again and again: when it has ended the engine does
//! not know any more.
//!
//! The figures are those of the last time it was asked, so they fall short of the truth by what
//! came after; a command that ends within the first moments has none.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bollard::Docker;
use bollard::models::ContainerStatsResponse;
use bollard::query_parameters::StatsOptionsBuilder;
use futures_util::StreamExt;
use stockade_linux::Usage;

/// The first time, then after twice as long each time, up to [`SLOWEST`].
const FIRST: Duration = Duration::from_millis(40);
const SLOWEST: Duration = Duration::from_secs(1);

/// Keeps the figures up to date for as long as the container answers.
pub(crate) async fn follow(client: Docker, name: String, usage: Arc<Mutex<Usage>>) {
    let mut pause = FIRST;
    loop {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(SLOWEST);
        let options = StatsOptionsBuilder::default()
            .stream(false)
            .one_shot(true)
            .build();
        let mut answers = Box::pin(client.stats(&name, Some(options)));
        let Some(Ok(answer)) = answers.next().await else {
            return;
        };
        if let Ok(mut usage) = usage.lock() {
            add(&mut usage, &answer);
        }
    }
}

/// Neither can become less; an engine answers with nothing for a container that has just ended.
fn add(usage: &mut Usage, answer: &ContainerStatsResponse) {
    let cpu = answer
        .cpu_stats
        .as_ref()
        .and_then(|cpu| cpu.cpu_usage.as_ref());
    if let Some(cpu) = cpu {
        let micros = |nanoseconds: Option<u64>| nanoseconds.unwrap_or(0) / 1000;
        let (total, kernel) = (micros(cpu.total_usage), micros(cpu.usage_in_kernelmode));
        if total > usage.user_micros.saturating_add(usage.system_micros) {
            usage.system_micros = kernel.min(total);
            usage.user_micros = total.saturating_sub(kernel);
        }
    }
    if let Some(memory) = &answer.memory_stats {
        // Only control groups of the first version tell the peak themselves.
        let now = memory.max_usage.max(memory.usage).unwrap_or(0);
        usage.peak_kib = usage.peak_kib.max(now / 1024);
    }
}

#[cfg(test)]
mod tests {
    use bollard::models::{ContainerCpuStats, ContainerCpuUsage, ContainerMemoryStats};

    use super::*;

    fn answer(total: u64, kernel: u64, memory: u64, peak: Option<u64>) -> ContainerStatsResponse {
        ContainerStatsResponse {
            cpu_stats: Some(ContainerCpuStats {
                cpu_usage: Some(ContainerCpuUsage {
                    total_usage: Some(total),
                    usage_in_kernelmode: Some(kernel),
                    ..ContainerCpuUsage::default()
                }),
                ..ContainerCpuStats::default()
            }),
            memory_stats: Some(ContainerMemoryStats {
                usage: Some(memory),
                max_usage: peak,
                ..ContainerMemoryStats::default()
            }),
            ..ContainerStatsResponse::default()
        }
    }

    #[test]
    fn figures_only_grow() {
        let mut usage = Usage::default();
        add(
            &mut usage,
            &answer(5_000_000, 2_000_000, 1 << 20, Some(3 << 20)),
        );
        assert_eq!((usage.user_micros, usage.system_micros), (3000, 2000));
        assert_eq!(usage.peak_kib, 3072);
        add(&mut usage, &answer(0, 0, 0, None));
        add(&mut usage, &ContainerStatsResponse::default());
        assert_eq!((usage.user_micros, usage.system_micros), (3000, 2000));
        add(&mut usage, &answer(6_000_000, 7_000_000, 4 << 20, None));
        assert_eq!((usage.user_micros, usage.system_micros), (0, 6000));
        assert_eq!(usage.peak_kib, 4096);
    }
}
