/** Deciding about commands: the time beside that of JSON.parse, and that of a hostile command beside an ordinary one. */
import { decidePermission, NO_RULES } from '../../packages/agent/src/agent/permissions.ts'
import { USUAL_RULES } from '../../packages/agent/test/attacks/attack.ts'
import type { BenchCase } from '../harness/bench-case.ts'

const ORDINARY = [
  ...['npm test 2>&1 | tail -20', 'git status --short && git diff --stat', 'ls -la src', 'cat package.json'],
  ...[
    'grep -rn "foo" src --include="*.ts"',
    'cd src && find . -name "*.ts" | head -5',
    'git log --oneline -5',
  ],
  ...[
    'git commit -m "Fix the sum; and the rest"',
    'npm run build; echo $?',
    'node scripts/build.mjs --watch',
  ],
]
const rules = {
  ...NO_RULES,
  allow: USUAL_RULES,
  deny: ['Bash(rm:*)', 'Bash(git push:*)'],
}
const decide = (command: string): unknown =>
  decidePermission(
    'Bash',
    { kind: 'execute', paths: [], command },
    { rules, mode: 'default', folder: '/srv/app', home: '/users/ann' },
  )
const DATA = JSON.stringify(ORDINARY.flatMap((text) => Array.from({ length: 10 }, (_, id) => ({ id, text }))))

/** Commands that are as long as they may be to be read, made to cost as much as they can. */
const HOSTILE = ['nice -x ', 'sudo -Z env -S ', 'curl ', 'ls;', '$(', 'bash -c ', "eval '", '[* '].map(
  (text) => text.repeat(Math.floor(9_900 / text.length)),
)

function measureTimes(commands: readonly string[], rounds: number): string {
  const times: number[] = []
  for (let round = 0; round < rounds; round += 1)
    for (const command of commands) {
      const started = performance.now()
      decide(command)
      times.push(performance.now() - started)
    }
  times.sort((a, b) => a - b)
  const show = (share: number): string =>
    `${((times[Math.floor(times.length * share)] ?? 0) * 1_000).toFixed(0)} µs`
  return `p50 ${show(0.5)}, p99 ${show(0.99)}`
}

export const benchCases: readonly BenchCase[] = [
  {
    name: 'permission-decision',
    compares: 'a decision about each of ten ordinary commands with JSON.parse of 100 of them',
    bound: { atMost: 200 },
    async prepare() {
      measureTimes(ORDINARY, 200)
      console.error(`  an ordinary command: ${measureTimes(ORDINARY, 1_000)}`)
      return {
        subject: () => ORDINARY.map(decide),
        baseline: () => JSON.parse(DATA),
        close: () => undefined,
      }
    },
  },
  {
    name: 'hostile-command',
    compares: 'a decision about each of eight hostile commands of 10,000 characters with ten ordinary ones',
    bound: { atMost: 400 },
    async prepare() {
      measureTimes(HOSTILE, 5)
      console.error(`  a hostile command: ${measureTimes(HOSTILE, 20)}`)
      return {
        subject: () => HOSTILE.map(decide),
        baseline: () => ORDINARY.map(decide),
        close: () => undefined,
      }
    },
  },
]
