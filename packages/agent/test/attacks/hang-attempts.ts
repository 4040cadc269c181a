/** Tries each pattern of `hang-attacks.ts` in each place where patterns are matched, and prints what came of it as JSON. */
import { decidePermission, findRuleProblem, NO_RULES } from '../../src/agent/permissions.ts'
import {
  compilePathFilter,
  decideIgnored,
  parseIgnoreRules,
  toFileGlob,
} from '../../src/tools/glob-pattern.ts'
import { PATTERNS } from './hang-attacks.ts'

const NAME = 'a'.repeat(200)
const NAMES = [...Array.from({ length: 30 }, () => 'a'), NAME]
const COMMAND = `echo ${'a'.repeat(20_000)}`

/** Returns `refused` if the place does not take the pattern, else `matched`, whatever the result. */
const PLACES: Readonly<Record<string, (pattern: string) => 'refused' | 'matched'>> = {
  'ignore file'(pattern) {
    const rules = parseIgnoreRules(pattern)
    for (const isFolder of [true, false]) decideIgnored(rules, NAMES, isFolder)
    return 'matched'
  },
  'tool glob'(pattern) {
    try {
      compilePathFilter(toFileGlob(pattern))(NAMES.join('/'))
      return 'matched'
    } catch {
      return 'refused'
    }
  },
  'path rule': (pattern) =>
    tryRule(`Read(${pattern})`, 'Read', { kind: 'read', paths: [`/srv/app/${NAMES.join('/')}`] }),
  'command rule': (pattern) =>
    tryRule(`Bash(${pattern})`, 'Bash', { kind: 'execute', paths: [], command: COMMAND }),
  'address rule': (pattern) =>
    tryRule(`WebFetch(${pattern})`, 'WebFetch', {
      kind: 'network',
      paths: [],
      url: `https://${NAMES.join('/')}`,
    }),
}

function tryRule(
  rule: string,
  tool: string,
  access: Parameters<typeof decidePermission>[1],
): 'refused' | 'matched' {
  const rules = { ...NO_RULES, deny: [rule] }
  // Also a rule that is refused when settings are read must not hang.
  decidePermission(tool, access, { rules, mode: 'default', folder: '/srv/app', home: '/users/ann' })
  return findRuleProblem(rule) === null ? 'matched' : 'refused'
}

const results = PATTERNS.flatMap(({ name, attempts }) =>
  attempts.flatMap((attempt) =>
    Object.entries(PLACES).map(([place, attack]) => ({
      name,
      place,
      attempt: attempt.slice(0, 20),
      result: attack(attempt),
    })),
  ),
)
console.log(JSON.stringify(results))
