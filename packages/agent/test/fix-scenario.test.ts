/** The scenario `fix` of `tidemark simulate`: a small real repair of the sample project. */
import { spawnSync } from 'node:child_process'
import { cpSync } from 'node:fs'
import { loadScenario } from '@tidemark/simulator'
import { expect, it } from 'vitest'
import { FIX_SCENARIO_PATH, SAMPLE_PROJECT_PATH } from '../src/sample-project.ts'
import { createChatWorld } from './chat-world.ts'

async function createFixWorld() {
  const loaded = await loadScenario(FIX_SCENARIO_PATH)
  if (!loaded.ok) throw new Error(loaded.message)
  const world = await createChatWorld(loaded.script)
  cpSync(SAMPLE_PROJECT_PATH, world.folder, { recursive: true })
  const rules = ['--allowed-tools', 'Edit', 'Bash(node --test)']
  const countFailures = (): number => {
    const { stdout } = spawnSync(process.execPath, ['--test', '--test-reporter=tap'], {
      cwd: world.folder,
      env: { ...process.env, NODE_TEST_CONTEXT: undefined },
      encoding: 'utf8',
    })
    return Number(/^# fail (\d+)$/m.exec(stdout)?.[1])
  }
  return { world, rules, countFailures }
}

it('the scenario fix repairs the sample project in two prompts, with edits and test runs that are real', async () => {
  const { world, rules, countFailures } = await createFixWorld()
  const first = await world.run('chat', '-p', 'Fix the prices.', ...rules)
  expect(first.out).toContain('Prices are right now')
  expect(countFailures()).toBe(2)
  const second = await world.run('chat', '--continue', '-p', 'Yes.', ...rules)
  expect(second.out).toContain('All tests pass.')
  expect(countFailures()).toBe(0)
})

it('after a refused edit, the scenario fix begins anew in the next conversation, and says that prices are right only then', async () => {
  const { world, rules, countFailures } = await createFixWorld()
  const refused = await world.run('chat', '-p', 'Fix the prices.')
  expect(refused.out).toContain('That was not changed.')
  expect(countFailures()).toBe(4)
  const allowed = await world.run('chat', '-p', 'Fix the prices.', ...rules)
  expect(allowed.out).toContain('Prices are right now')
  expect(countFailures()).toBe(2)
})
