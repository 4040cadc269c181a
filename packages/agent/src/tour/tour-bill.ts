/** The cost of one run of the job, from the simulator's record of every request. */
import type { RequestRecord } from '@tidemark/simulator'

export interface RunBill {
  /** Requests that the provider answered, summaries included. */
  readonly requests: number
  /** Tokens of each answered prompt, in order. */
  readonly promptSizes: readonly number[]
  readonly promptTokens: number
  readonly outputTokens: number
  /** Share of the prompt tokens that were read from the cache, 0 to 1. */
  readonly hitRate: number
  readonly dollars: number
  /** The cost of the same requests without a prompt cache. */
  readonly dollarsUncached: number
}

/** Adds up the requests of a run. Refused requests are left out. */
export function createRunBill(records: readonly RequestRecord[]): RunBill {
  const answered = records.flatMap(({ usage, cost }) => (usage === null ? [] : [{ usage, cost }]))
  const promptSizes = answered.map(({ usage }) => countPromptTokens(usage))
  const sum = (amounts: readonly number[]): number => amounts.reduce((all, amount) => all + amount, 0)
  const promptTokens = sum(promptSizes)
  const dollars = sum(answered.map(({ cost }) => cost?.total ?? 0))
  return {
    requests: answered.length,
    promptSizes,
    promptTokens,
    outputTokens: sum(answered.map(({ usage }) => usage.output)),
    hitRate: promptTokens === 0 ? 0 : sum(answered.map(({ usage }) => usage.cacheRead)) / promptTokens,
    dollars,
    dollarsUncached: dollars + sum(answered.map(({ cost }) => cost?.saved ?? 0)),
  }
}

function countPromptTokens(usage: NonNullable<RequestRecord['usage']>): number {
  return usage.input + usage.cacheRead + usage.write5m + usage.write1h
}
