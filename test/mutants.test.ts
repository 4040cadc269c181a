import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import type { Mutant } from '../scripts/mutants/mutant.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

async function mutants(): Promise<readonly Mutant[]> {
  const files = readdirSync(join(root, 'mutants')).filter((name) => name.endsWith('.ts'))
  const tables = await Promise.all(files.map((name) => import(join(root, 'mutants', name))))
  return tables.flatMap((table: object) => Object.values(table).flat())
}

describe('mutants', () => {
  it('break code that is there: what each one changes stands in its file once', async () => {
    const all = await mutants()
    expect(all.length).toBeGreaterThan(200)
    const stale = all.filter(
      ({ file, find }) => readFileSync(join(root, file), 'utf8').split(find).length !== 2,
    )
    expect(stale.map(({ name, file }) => `${name}: ${file}`)).toEqual([])
  })
})
