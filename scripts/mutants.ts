/**
 * `npm run mutants [-- --only NAME]`: breaks the code in every way the tables of `mutants/` list and tells
 * which law noticed. Exits 1 when a mutant survives, is stale, or was noticed by something else; 2 on wrong use.
 */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import type { Mutant } from './mutants/mutant.ts'
import { type MutantResult, runMutants } from './mutants/run-mutants.ts'
import type { Verdict } from './mutants/verdict.ts'
import { table } from './table.ts'
import { runScript, WrongUse } from './wrong-use.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const FOLDER = join(root, 'mutants')
const TIMEOUT_MS = 600_000
/** Names are sentences: a table shows so many characters of them. */
const NAME_SHOWN = 70
const stopped = new AbortController()

async function loadMutants(): Promise<readonly Mutant[]> {
  const files = existsSync(FOLDER) ? readdirSync(FOLDER).filter((name) => name.endsWith('.ts')) : []
  const tables = await Promise.all(
    files.sort().map(async (name) => {
      const loaded: { readonly mutants?: readonly Mutant[] } = await import(
        pathToFileURL(join(FOLDER, name)).href
      )
      if (loaded.mutants === undefined) throw new Error(`mutants/${name} must export \`mutants\``)
      return loaded.mutants
    }),
  )
  return tables.flat()
}

async function main(): Promise<number> {
  const { values } = parseArgs({ options: { only: { type: 'string', multiple: true } } })
  const all = await loadMutants()
  const names = all.map(({ name }) => name)
  const twice = names.filter((name, index) => names.indexOf(name) !== index)
  if (twice.length > 0) throw new Error(`two mutants have the name ${twice.join(', ')}`)
  const unknown = values.only?.filter((name) => !names.includes(name)) ?? []
  if (unknown.length > 0)
    throw new WrongUse(`no mutant named ${unknown.join(', ')}; there are: ${names.join(', ')}`)
  const mutants = all.filter(({ name }) => values.only?.includes(name) ?? true)
  if (mutants.length === 0) {
    console.log('Nothing to break: mutants/ lists no mutant.')
    return 0
  }
  const limits = { timeoutMs: TIMEOUT_MS, signal: stopped.signal }
  const result = await runMutants({
    root,
    mutants,
    progress: (line) => console.error(line),
    limits,
  })
  console.log(report(result))
  return result.ok ? 0 : 1
}

function report(result: MutantResult): string {
  if (result.verdicts === null)
    return `The tests fail without any mutant; mend them first:\n${result.failing.join('\n')}`
  const rows = result.verdicts.map(({ mutant, kind, noticedBy }) => [
    mutant.name,
    mutant.law,
    shown(noticedBy),
    kind,
  ])
  const advice = result.verdicts
    .filter((one) => one.advice !== '')
    .map((one) => `${one.mutant.name}: ${one.advice}`)
  const noticed = result.verdicts.filter(({ kind }) => kind === 'noticed').length
  const total = `${noticed} of ${result.verdicts.length} noticed as expected`
  return [table(['mutant', 'expected', 'noticed by', 'verdict'], rows), '', ...advice, total].join('\n')
}

function shown(names: Verdict['noticedBy']): string {
  const [first] = names
  if (first === undefined) return '–'
  const name = first.length > NAME_SHOWN ? `${first.slice(0, NAME_SHOWN - 1)}…` : first
  return names.length === 1 ? name : `${name} and ${names.length - 1} more`
}

process.once('SIGINT', () => stopped.abort(new WrongUse('stopped')))
await runScript('mutants', main)
