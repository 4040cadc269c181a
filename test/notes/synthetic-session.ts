/** Made-up sessions with everything that the exam asks about, the same for the same seed. */

import { ClaudeLog, CodexLog } from './exam-log-builder.ts'

const AREAS = ['cart', 'tax', 'orders', 'search', 'login', 'mail', 'stock', 'prices']
const PROMPTS = [
  'Now look at the orders.\n\n- keep the old table\n- no new dependency',
  'No, leave the database alone.',
  'Actually, do the tax first',
  'yes',
  `Here is what the customer wrote: ${'the total is wrong when I change the address, '.repeat(40)}please fix it`,
  "Don't rename the functions, other teams call them.",
  'Go on with the next one',
]
const REFUSALS = ['use the helper in src/money.ts instead', 'not on main, make a branch']

/** Writes a session of Claude Code with at least the given number of tool calls. */
export function writeSyntheticSession(seed: number, calls: number): readonly string[] {
  const random = createRandom(seed)
  const log = new ClaudeLog()
  const pick = <Item>(items: readonly Item[]): Item => items[random(items.length)] as Item
  const changeList = seed % 2 === 0 ? changeTasks : changeTodos
  const steps = [runCheck, runTests, editFile, readFile, changeList, speak, breakOff, compact]
  log.user('Make the shop add tax to every order. Do not touch the mail templates.')
  for (let count = 0; log.lines.length < calls * 4; count += 1) pick(steps)(log, { count, random, pick })
  return log.lines
}

interface Choices {
  readonly count: number
  readonly random: (below: number) => number
  readonly pick: <Item>(items: readonly Item[]) => Item
}

function runCheck(log: ClaudeLog, { count, random, pick }: Choices): void {
  const area = pick(AREAS)
  const commands = [
    `npm run lint -- src/${area}`,
    `grep -rn "total" src/${area} | head -20`,
    `node scripts/import.ts --area ${area} --from 'January' --to 'December' --format \`date +%F\` --verbose --retries 5 --output out/${area}-${random(3)}.json`,
    `git  commit -m "Work on ${area}\n\nStep ${count}"`,
  ]
  const isError = random(4) === 0
  log.bash(
    pick(commands),
    isError ? `Exit code ${1 + random(3)}\nerror: ${area} is broken` : `${area} is fine`,
    isError,
  )
  if (random(6) === 0)
    log.call(
      'Bash',
      { command: `npm run watch:${area}`, run_in_background: true },
      'Command running in background with ID: b1',
    )
}

function runTests(log: ClaudeLog, { random, pick }: Choices): void {
  const area = pick(AREAS)
  const failing = AREAS.filter(() => random(4) === 0)
  const marks = failing.map((name) => `   \u001b[31m× ${name} adds tax\u001b[39m ${1 + random(90)}ms`)
  const isError = failing.length > 0
  const text = [
    ...(isError ? ['Exit code 1'] : []),
    ...marks,
    `Tests  ${failing.length} failed | 12 passed (12)`,
  ].join('\n')
  log.bash(`npx vitest run src/${area}`, text, isError)
}

function editFile(log: ClaudeLog, { random, pick }: Choices): void {
  const path = `/srv/shop/src/${pick(AREAS)}/part-${random(9)}.ts`
  const edit = { file_path: path, old_string: 'let', new_string: 'const' }
  if (random(5) === 0) log.call('Edit', edit, 'String to replace not found in file.', { isError: true })
  else if (random(3) === 0)
    log.call('Write', { file_path: path, content: 'export {}\n' }, `File created at: ${path}`)
  else log.call('Edit', edit, `The file ${path} has been updated.`)
}

function readFile(log: ClaudeLog, { random, pick }: Choices): void {
  const text = '     1→export const total = 1\n     2→// 3 failed, 2 passed'
  log.call('Read', { file_path: `/srv/shop/src/${pick(AREAS)}/read-${random(9)}.ts` }, text)
}

function changeTodos(log: ClaudeLog, { count, random, pick }: Choices): void {
  if (random(3) > 0) return
  const todos = AREAS.slice(random(4)).map((area) => ({
    content: `Add tax to ${area}${random(3) === 0 ? `, step ${count}` : ''}`,
    status: pick(['pending', 'in_progress', 'completed']),
    activeForm: `Adding tax to ${area}`,
  }))
  log.call('TodoWrite', { todos }, 'Todos have been modified successfully.')
}

function changeTasks(log: ClaudeLog, { count, random, pick }: Choices): void {
  if (random(3) > 0) return
  const subject = `Check ${pick(AREAS)} by hand, round ${count}`
  log.call('TaskCreate', { subject }, `Task #${count} created successfully: ${subject}`)
  const status = pick(['in_progress', 'completed', 'deleted'])
  if (random(2) === 0)
    log.call('TaskUpdate', { taskId: String(count), status }, `Updated task #${count} status`)
}

function speak(log: ClaudeLog, { random, pick }: Choices): void {
  const text = pick(PROMPTS)
  if (random(3) > 0) log.user(text)
  else
    log.record({
      type: 'attachment',
      attachment: { type: 'queued_command', prompt: text, commandMode: 'prompt' },
    })
  log.user('<task-notification><status>completed</status></task-notification>')
}

function breakOff(log: ClaudeLog, { random, pick }: Choices): void {
  const refused = "The user doesn't want to proceed with this tool use. The tool use was rejected"
  const said = ` (eg. if it was a file edit, the new_string was NOT written to the file). To tell you how to proceed, the user said:\n${pick(REFUSALS)}`
  const stop =
    ' (eg. if it was a file edit, the new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to proceed.'
  const hasWords = random(2) === 0
  log.call('Bash', { command: `git push origin ${pick(AREAS)}` }, `${refused}${hasWords ? said : stop}`, {
    isError: true,
  })
  if (hasWords) return
  log
    .user([{ type: 'text', text: '[Request interrupted by user for tool use]' }])
    .user(`${pick(AREAS)} comes first`)
}

function compact(log: ClaudeLog, { random }: Choices): void {
  if (random(4) > 0) return
  const logicalParentUuid = `record-${log.lines.length}`
  log.record({
    type: 'system',
    subtype: 'compact_boundary',
    content: 'Conversation compacted',
    parentUuid: null,
    logicalParentUuid,
    compactMetadata: { trigger: 'auto', preTokens: 150_000 },
  })
  log.user('This session is being continued from a previous conversation. Summary: all done.', {
    isCompactSummary: true,
    isVisibleInTranscriptOnly: true,
  })
}

/** Writes a rollout of Codex with the given number of tool calls. */
export function writeSyntheticRollout(seed: number, calls: number): readonly string[] {
  const random = createRandom(seed)
  const pick = <Item>(items: readonly Item[]): Item => items[random(items.length)] as Item
  const log = new CodexLog().user('Make the shop add tax to every order.')
  for (let count = 0; count < calls; count += 1) {
    const area = pick(AREAS)
    if (random(12) === 0) log.user(pick(PROMPTS))
    if (random(10) === 0) {
      const plan = AREAS.map((step) => ({
        step: `Add tax to ${step}`,
        status: pick(['pending', 'completed']),
      }))
      log.call('update_plan', { plan }, 'Plan updated')
    } else if (random(4) === 0) {
      const patch = `*** Begin Patch\n*** Update File: src/${area}/part-${random(9)}.ts\n@@\n-let\n+const\n*** End Patch`
      const isDone = random(4) > 0
      log.patch(patch, isDone ? PATCHED : 'apply_patch verification failed: Failed to find expected lines')
    } else {
      const state = pick([
        'exited with code 0',
        'exited with code 0',
        'exited with code 2',
        'running with session ID 7',
      ])
      const header = `Command: /bin/zsh -lc ${area}\nChunk ID: 8c7cc0\nWall time: 0.1 seconds\nProcess ${state}`
      const cmd = pick([
        `rg -n total src/${area}`,
        `sed -n '1,80p' src/${area}/part-1.ts`,
        `go test ./${area}/...`,
      ])
      const output = cmd.startsWith('go')
        ? `ok  \tshop/${area}\t0.3s`
        : `line\n${'more\n'.repeat(random(12))}`
      log.call(
        'exec_command',
        { cmd, workdir: '/srv/shop' },
        `${header}\nOriginal token count: 11\nOutput:\n${output}`,
      )
    }
  }
  return log.lines
}

const PATCHED =
  '{"output":"Success. Updated the following files:\\nM src/a.ts\\n","metadata":{"exit_code":0,"duration_seconds":0.0}}'

/** A generator of numbers below a limit: Numerical Recipes' linear congruential one. */
function createRandom(seed: number): (below: number) => number {
  let state = seed >>> 0
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}
