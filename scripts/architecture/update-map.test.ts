import { expect, it } from 'vitest'
import { headerOf } from './file-header.ts'
import { checkMap } from './map.ts'
import { updateMap } from './update-map.ts'

const map = `# Architecture

## \`packages/core/src\`
The engine.

- \`errors.ts\`: the one error class
- \`view/\`: what the model is shown
  - \`view/view.ts\`: in words of our own
  - \`view/gone.ts\`: a file that is no more

## \`scripts\`

- \`names.ts\`: writes the public names
`

it('adds what is missing in its room, takes out what is gone, and leaves the rest as written', () => {
  const files = [
    'packages/core/src/clear/idle.ts',
    'packages/core/src/errors.ts',
    'packages/core/src/view/flatten.ts',
    'packages/core/src/view/view.ts',
    'packages/wire/src/sse.ts',
    'scripts/names.ts',
  ]
  const updated = updateMap(map, files, (path) => `says ${path}`)
  expect(updated).toBe(`# Architecture

## \`packages/core/src\`
The engine.

- \`errors.ts\`: the one error class
- \`view/\`: what the model is shown
  - \`view/view.ts\`: in words of our own
  - \`view/flatten.ts\`: says packages/core/src/view/flatten.ts
- \`clear/\`: ?
  - \`clear/idle.ts\`: says packages/core/src/clear/idle.ts

## \`scripts\`

- \`names.ts\`: writes the public names

## \`packages/wire/src\`

- \`sse.ts\`: says packages/wire/src/sse.ts
`)
  expect(checkMap(updated, files).map(({ why }) => why)).toEqual([
    'says nothing about packages/core/src/clear/',
  ])
  expect(updateMap(updated, files, () => null)).toBe(updated)
  expect(updateMap(updated.replace('- `clear/`: ?\n', ''), files, () => null)).toBe(updated)
  const unsaid = updateMap(map, files, () => null)
  expect(updateMap(unsaid, files, (path) => `says ${path}`)).toBe(updated)
})

it.each([
  ['/** One line of the view: a record. And more. */\nexport {}', 'one line of the view: a record'],
  [
    '/**\n * A list that only\n * grows, e.g. this one.\n *\n * More.\n */',
    'a list that only grows, e.g. this one',
  ],
  ['/** `tidemark start`: what it is. */', '`tidemark start`: what it is'],
  ['/** JSON values, and one question. */', 'JSON values, and one question'],
  ["/** OpenAI's models. */", "OpenAI's models"],
  [
    "import { a } from './a.ts'\n\n/** Time that passes when told to. */\nexport const b = a",
    'time that passes when told to',
  ],
  ['#!/usr/bin/env node\n// The command.\nrun()', 'the command'],
  [`/** Short: ${'long '.repeat(15)}long; and ${'more '.repeat(10)} */`, `short: ${'long '.repeat(15)}long`],
  [`/** ${'Long '.repeat(5)}(a, ${'long '.repeat(16)}b), and more. */`, 'long Long Long Long Long'],
  ['/** Claude from 4.6 on. */', 'Claude from 4.6 on'],
  ['export {}', null],
])('reads the header of %j', (text, expected) => {
  expect(headerOf({ path: 'a.ts', text })).toBe(expected)
})
