/** `npm run bench [-- --only NAME] [--json]`: exits 1 when a bound is missed, 2 on wrong use. */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { runScript, WrongUse } from '../scripts/wrong-use.ts'
import type { BenchCase } from './harness/bench-case.ts'
import type { Stopwatch } from './harness/measure.ts'
import { benchJson, benchTable } from './harness/report.ts'
import { type CaseResult, runCase } from './harness/run-case.ts'

const FOLDER = fileURLToPath(new URL('cases', import.meta.url))

const watch: Stopwatch = { now: () => performance.now(), collect: () => globalThis.gc?.() }

async function loadCases(): Promise<readonly BenchCase[]> {
  const names = existsSync(FOLDER) ? readdirSync(FOLDER) : []
  const files = names.filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
  const loaded = await Promise.all(
    files.sort().map(async (name) => {
      const { benchCase, benchCases }: CaseFile = await import(pathToFileURL(join(FOLDER, name)).href)
      if (benchCases === undefined && benchCase === undefined)
        throw new Error(`bench/cases/${name} must export \`benchCase\` or \`benchCases\``)
      return benchCases ?? [benchCase].filter((one) => one !== undefined)
    }),
  )
  return loaded.flat()
}

interface CaseFile {
  readonly benchCase?: BenchCase
  readonly benchCases?: readonly BenchCase[]
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: { only: { type: 'string', multiple: true }, json: { type: 'boolean' } },
  })
  const cases = await loadCases()
  const unknown = values.only?.filter((name) => !cases.some((one) => one.name === name)) ?? []
  if (unknown.length > 0)
    throw new WrongUse(`no case named ${unknown.join(', ')}; there are: ${namesOf(cases)}`)
  const chosen = cases.filter(({ name }) => values.only?.includes(name) ?? true)
  const results: CaseResult[] = []
  for (const one of chosen) {
    console.error(`${results.length + 1}/${chosen.length} ${one.name}`)
    results.push(await runCase(one, watch))
  }
  console.log(values.json ? benchJson(results) : said(results))
  return results.every(({ ok }) => ok) ? 0 : 1
}

function said(results: readonly CaseResult[]): string {
  return results.length === 0 ? 'Nothing to measure: bench/cases holds no case.' : benchTable(results)
}

function namesOf(cases: readonly BenchCase[]): string {
  return cases.map(({ name }) => name).join(', ') || '(none)'
}

await runScript('bench', main)
