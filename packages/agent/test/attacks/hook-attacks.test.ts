/** The files that hooks run, through the code that guards them. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { listHookFiles } from '../../src/agent/hook-files.ts'
import { CHECKING_COMMANDS, HOOK_COMMANDS, HOOK_PROJECT } from './hook-attacks.ts'

let folder = ''

beforeAll(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'tidemark-hook-attacks-')))
  for (const [path, text] of Object.entries({ ...HOOK_PROJECT, 'scripts/lint.mjs': '' })) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

const listGuarded = async (command: string): Promise<readonly string[]> =>
  (await listHookFiles({ Stop: [{ hooks: [{ command }] }] }, folder)).map((path) =>
    path.slice(folder.length + 1),
  )

it('a file that a hook runs is guarded, however the hook names it', async () => {
  const missed: (readonly string[])[] = []
  for (const [command, file] of HOOK_COMMANDS)
    if (!(await listGuarded(command)).includes(file)) missed.push([command, file])
  expect(missed).toEqual([])
})

it('a file that a hook checks is not guarded', async () => {
  for (const command of CHECKING_COMMANDS)
    expect([command, (await listGuarded(command)).filter((path) => path.startsWith('src'))]).toEqual([
      command,
      [],
    ])
})

it('a missing file that a program would take instead of the one it runs is guarded', async () => {
  expect(await listGuarded('node hooks/check')).toContain('hooks/check')
  expect(await listGuarded('node ./pkg')).toContain('pkg/start')
  expect(await listGuarded('node ./hooks')).toContain('hooks.js')
})
