/**
 * What the planner would do with recorded sessions, call by call, and what that would cost:
 * `node --conditions=tidemark-source scripts/plan-table.ts FILE…`. Reads only; nothing of a session is printed.
 */
import { existsSync } from 'node:fs'
import { basename } from 'node:path'
import { parseArgs } from 'node:util'
import type { KnownRecord } from '@tidemark/core/log/record'
import { createPolicy } from '@tidemark/core/policy/create-policy'
import type { Policy } from '@tidemark/core/policy/policy'
import type { DeepPartial } from '@tidemark/core/policy/policy-fields'
import { lookUpModel, modelCatalogue, pricesAtDate } from '@tidemark/wire/catalogue/catalogue'
import { createEstimatorWeights } from '@tidemark/wire/catalogue/estimator-weights'
import { createProviderProfile } from '@tidemark/wire/profiles/provider-profile'
import { linear, readRecords } from './plan-table/linear.ts'
import { type Replayed, replay } from './plan-table/replay.ts'
import { table } from './table.ts'
import { runScript, WrongUse } from './wrong-use.ts'

const POLICIES: readonly (readonly [name: string, policy: DeepPartial<Policy>])[] = [
  ['only at the line', { clear: { ways: [] } }],
  ['and clearing', {}],
]

await runScript('plan-table', async () => {
  const { positionals } = parseArgs({ allowPositionals: true })
  const missing = positionals.find((file) => !existsSync(file))
  if (positionals.length === 0 || missing !== undefined)
    throw new WrongUse(
      missing === undefined ? 'give the logs of recorded sessions' : `there is no ${missing}`,
    )
  const rows = positionals.flatMap(rowsOf)
  console.log(
    table(
      [
        'session',
        'model',
        'planned',
        'calls',
        'peak',
        'cleared',
        'freed',
        'said to cost',
        'compacted',
        'money',
        'of it',
      ],
      rows,
    ),
  )
  return 0
})

function rowsOf(file: string): readonly (readonly string[])[] {
  const records = linear(readRecords(file))
  const name = basename(file).replace(/\..*$/, '').slice(-8)
  const led = POLICIES.map(([planned, overrides]) => ({ planned, done: replayed(records, overrides) }))
  const least = led[0]?.done.money ?? 0
  return led.map(({ planned, done }) => [
    name,
    modelOf(records),
    planned,
    ...cells(done),
    share(done.money, least),
  ])
}

function cells({
  calls,
  peakTokens,
  cleared,
  freedTokens,
  clearingCost,
  compacted,
  money,
}: Replayed): readonly string[] {
  return [
    String(calls),
    thousands(peakTokens),
    `${cleared.idle} idle, ${cleared.budget} budget`,
    thousands(freedTokens),
    `$${clearingCost.toFixed(2)}`,
    `${compacted.soft} soft, ${compacted.hard} hard`,
    `$${money.toFixed(2)}`,
  ]
}

function replayed(records: readonly KnownRecord[], overrides: DeepPartial<Policy>): Replayed {
  const found = lookUpModel(modelCatalogue, modelOf(records))
  if (!found.found) throw new WrongUse(`no model is known by the name ${modelOf(records)}`)
  const { model } = found
  // What a session learns in its first calls: nothing measured is left in what is replayed.
  const policy = createPolicy({ ...overrides, estimate: { highFactor: 1.05 } })
  return replay(records, {
    policy,
    profile: createProviderProfile(model),
    prices: pricesAtDate(model, records[0]?.timestamp ?? ''),
    window: 200_000,
    weights: createEstimatorWeights(model.tokenizer, policy.estimate),
  })
}

/** The one that answered most. */
function modelOf(records: readonly KnownRecord[]): string {
  const counts = new Map<string, number>()
  for (const record of records) {
    if (record.type === 'assistant')
      counts.set(record.message.model, (counts.get(record.message.model) ?? 0) + 1)
  }
  return [...counts].toSorted((one, other) => other[1] - one[1])[0]?.[0] ?? ''
}

function thousands(tokens: number): string {
  return `${Math.round(tokens / 1000)}k`
}

function share(money: number, whole: number): string {
  return whole === 0 ? '–' : `${((100 * money) / whole).toFixed(0)}%`
}
