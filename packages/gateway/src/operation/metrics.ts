/** Metrics of one process in the text format of Prometheus. Figures over all processes are in the database: `keys list`. */

type Labels = Readonly<Record<string, string>>

export interface Metrics {
  /** Adds to a counter. Each combination of labels is a series that is kept, so labels must have few values. */
  count(name: CounterName, labels?: Labels, amount?: number): void
  /** Adds the duration of a request to the histogram. */
  observeSeconds(seconds: number): void
  /** Returns all metrics as text. `gauges`: current values, by name without the prefix `tidemark_gateway_`. */
  render(gauges: Readonly<Record<string, number>>): string
}

const COUNTERS = {
  tidemark_gateway_responses_total: 'Responses to clients, by status; 499 for clients that left before.',
  tidemark_gateway_calls_total: 'Calls to providers that were settled.',
  tidemark_gateway_tokens_total: 'Tokens of settled calls, by class.',
  tidemark_gateway_dollars_total: 'Dollars of settled calls.',
  tidemark_gateway_refusals_total: 'Calls that were not sent, by reason.',
  tidemark_gateway_rewrites_total: 'Compactions and clearings of sessions.',
  tidemark_gateway_settle_retries_total: 'Attempts to store the cost of a call that failed.',
  tidemark_gateway_budget_warnings_total: 'Budgets that reached the share at which their key is warned.',
} as const

type CounterName = keyof typeof COUNTERS

const DURATION = 'tidemark_gateway_request_seconds'
const BUCKETS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300]

export function createMetrics(): Metrics {
  const counters = new Map<CounterName, Map<string, number>>()
  const buckets = BUCKETS.map(() => 0)
  let [sum, total] = [0, 0]
  return {
    count(name, labels = {}, amount = 1) {
      const series = counters.get(name) ?? new Map<string, number>()
      counters.set(name, series)
      const key = formatLabels(labels)
      series.set(key, (series.get(key) ?? 0) + amount)
    },
    observeSeconds(seconds) {
      total += 1
      sum += seconds
      for (const [index, bound] of BUCKETS.entries())
        if (seconds <= bound) buckets[index] = (buckets[index] ?? 0) + 1
    },
    render(gauges) {
      const lines: string[] = []
      for (const [name, series] of counters) {
        lines.push(`# HELP ${name} ${COUNTERS[name]}`, `# TYPE ${name} counter`)
        for (const [labels, value] of series) lines.push(`${name}${labels} ${value}`)
      }
      lines.push(`# TYPE ${DURATION} histogram`)
      for (const [index, bound] of BUCKETS.entries())
        lines.push(`${DURATION}_bucket{le="${bound}"} ${buckets[index]}`)
      lines.push(
        `${DURATION}_bucket{le="+Inf"} ${total}`,
        `${DURATION}_sum ${sum}`,
        `${DURATION}_count ${total}`,
      )
      for (const [name, value] of Object.entries(gauges))
        lines.push(`# TYPE tidemark_gateway_${name} gauge`, `tidemark_gateway_${name} ${value}`)
      return `${lines.join('\n')}\n`
    },
  }
}

function formatLabels(labels: Labels): string {
  const parts = Object.entries(labels).map(
    ([name, value]) =>
      `${name}="${value.replace(/[\\"\n]/g, (sign) => (sign === '\n' ? '\\n' : `\\${sign}`))}"`,
  )
  return parts.length === 0 ? '' : `{${parts.join(',')}}`
}
