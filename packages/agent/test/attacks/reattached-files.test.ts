/** What a compaction attaches again is read by this program, outside the sandbox: only what the model could read anyway. */
import { rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { createSubagentWorld } from '../subagent-world.ts'

const LONG = Array.from({ length: 250 }, (_, line) => `line ${line} ${(line * 7919) % 10_007} value`).join(
  '\n',
)
const SECRET = 'swordfish-4711'

it('a compaction attaches no file that a command or a link names and that the model may not read', async () => {
  const steps = [
    { Read: { file_path: 'long.txt' } },
    { Read: { file_path: 'notes.txt' } },
    { Read: { file_path: 'other.txt' } },
    // It prints nothing, as in a sandbox that hides the file; its words name the file all the same.
    { Bash: { command: '[ 1 = 2 ] && cat ../secret.txt; true' } },
    'Done.',
  ]
  const world = await createSubagentWorld(({ count }) => steps[count] ?? 'Done.')
  const secret = join(dirname(world.folder), 'secret.txt')
  writeFileSync(secret, SECRET)
  world.write('long.txt', LONG)
  world.write('notes.txt', 'Plain notes.')
  world.write('other.txt', 'Other notes.')
  const main = await world.open()
  await main.ask()
  // What a command in the sandbox may do in the project.
  rmSync(world.path('notes.txt'))
  symlinkSync(secret, world.path('notes.txt'))
  expect(await main.agent.session.compact()).toMatchObject({ ok: true })
  await main.ask()
  const sent = JSON.stringify(world.requests.main?.at(-1)?.messages)
  expect(sent).toContain('Other notes.')
  expect(sent).not.toContain(SECRET)
})
