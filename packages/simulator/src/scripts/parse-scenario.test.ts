import { describe, expect, it } from 'vitest'
import { parseScenario } from './parse-scenario.ts'

function problems(source: string): readonly string[] {
  const parsed = parseScenario(source, 'login.yaml')
  return parsed.ok ? [] : parsed.problems
}

const NAMES = 'turn, request, model, user, result, now, random, words'

describe('an invalid scenario', () => {
  it.each([
    ['', 'login.yaml:1: expected fields, found null'],
    ['[]', 'login.yaml:1: expected fields, found a list'],
    ['{}', 'login.yaml:1: turns: is needed: a list of turns'],
    ['turns: yes', 'login.yaml:1: turns: expected a list, found "yes"'],
    [
      'turns:\n  - text: a\n  - txt: b',
      /^login.yaml:3: turns\[1\].txt: is not known here; known: when, times, /,
    ],
    [
      'turns:\n  - {}',
      'login.yaml:2: turns[0]: is empty; expected one of text, thinking, calls, blocks, script, fault',
    ],
    ['turns:\n  - text: 5', 'login.yaml:2: turns[0].text: expected text, found 5'],
    [
      'turns:\n  - text: a\n    times: 0',
      'login.yaml:3: turns[0].times: expected a whole number of at least 1, or "forever", found 0',
    ],
    ['turns:\n  - text: a\n    blocks: []', 'login.yaml:2: turns[0].text: cannot be combined with blocks'],
    [
      'turns:\n  - script: coder\n    thinking: b',
      'login.yaml:3: turns[0].thinking: cannot be combined with script',
    ],
    [
      'turns:\n  - script: codr',
      /^login.yaml:2: turns\[0\].script: there is no script "codr"; there are echo, coder, /,
    ],
    [
      'turns:\n  - script: coder?turns=many',
      'login.yaml:2: turns[0].script: the coder\'s turns must be a whole number, not "many"',
    ],
    [
      'turns:\n  - calls: [Read]',
      'login.yaml:2: turns[0].calls[0]: expected a call such as {Read: {file_path: a.ts}}, found "Read"',
    ],
    [
      'turns:\n  - calls:\n      - Read: a.ts',
      'login.yaml:3: turns[0].calls[0].Read: expected fields, found "a.ts"',
    ],
    [
      'turns:\n  - calls:\n      - input: {}\n        id: x',
      'login.yaml:3: turns[0].calls[0].name: is needed: which tool',
    ],
    [
      'turns:\n  - blocks:\n      - txt: a',
      'login.yaml:3: turns[0].blocks[0]: expected one of text, thinking, call, or a block with its type, found txt',
    ],
    [
      'turns:\n  - text: a\n    stop: later',
      /^login.yaml:3: turns\[0\].stop: expected one of end_turn, max_tokens, .*, found "later"$/,
    ],
    [
      'turns:\n  - text: a\n    delays: {start: soon}',
      'login.yaml:3: turns[0].delays.start: expected a time, such as 50ms, 2s or 50, found "soon"',
    ],
    [
      'turns:\n  - fault: status=200',
      'login.yaml:2: turns[0].fault: "status" needs a whole number from 400 to 599, not "200"',
    ],
    [
      'turns:\n  - text: a\n    when: {turn: 0}',
      'login.yaml:3: turns[0].when.turn: expected a turn such as 3, [3, 5], "every 4" or "from 10", found 0',
    ],
    [
      'turns:\n  - text: a\n    when: {says: /(/}',
      /^login.yaml:3: turns\[0\].when.says: expected a pattern between slashes: /,
    ],
    [
      'turns:\n  - text: hello {{who}}',
      `login.yaml:2: turns[0].text: {{who}} is not known; known: ${NAMES} (write \\{{ for the characters)`,
    ],
    [
      "turns:\n  - calls:\n    - Read: {a: [1, '{{x}}']}",
      /^login.yaml:3: turns\[0\].calls\[0\].Read.a\[1\]: {{x}} is not known/,
    ],
    [
      'turns: []\nrepeat: sometimes',
      'login.yaml:2: repeat: expected a whole number of at least 1, or "forever", found "sometimes"',
    ],
    ['turns: []\nvariables: {a: [1]}', 'login.yaml:2: variables.a: expected text or a number, found a list'],
    ['turns: [\n  {text: a', /^login.yaml:2: Flow map .* end with a }$/],
    ['turns: []\nturns: []', /^login.yaml:2: .*unique/i],
  ])('%j', (source, expected) => {
    const [first = 'nothing wrong', ...more] = problems(source)
    if (typeof expected === 'string') expect([first, ...more]).toEqual([expected])
    else expect(first).toMatch(expected)
  })

  it('is reported with all its problems', () => {
    expect(
      problems('repeat: 0\nturns:\n  - text: 1\n  - {}').map((problem) => problem.split(': ')[0]),
    ).toEqual(['login.yaml:1', 'login.yaml:3', 'login.yaml:4'])
  })
})

it('JSON is read as well, also with tabs', () => {
  const source = JSON.stringify(
    { turns: [{ calls: [{ Read: { file_path: 'a', 'odd key': [1.5, null] } }] }] },
    null,
    '\t',
  )
  expect(parseScenario(source, 'a.json')).toEqual({
    ok: true,
    scenario: {
      name: 'a.json',
      turns: [
        { says: [{ type: 'tool_use', name: 'Read', input: { file_path: 'a', 'odd key': [1.5, null] } }] },
      ],
    },
  })
})
