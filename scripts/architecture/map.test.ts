import { expect, it } from 'vitest'
import { checkMap } from './map.ts'

const files = ['packages/core/src/errors.ts', 'packages/core/src/view/flatten.ts', 'scripts/names.ts']
const map = `# Map
- \`not/a/place.ts\`: under a heading without a folder

## \`packages/core/src\`
Words about it, with \`code\` in them.
- \`errors.ts\`: the one error class
- \`view/\`: what the model sees
  - \`view/flatten.ts\`: from view to messages

## \`scripts\`
- \`names.ts\`: writes the public names
`
const why = (text: string, real: readonly string[] = files): readonly string[] =>
  checkMap(text, real).map((finding) => `${finding.line} ${finding.why}`)

it('accepts a map that names every room and file once', () => {
  expect(why(map)).toEqual([])
})

it('misses a file and its room', () => {
  expect(why(map, [...files, 'packages/core/src/clear/idle.ts'])).toEqual([
    '0 does not name packages/core/src/clear/idle.ts',
    '0 does not name packages/core/src/clear/',
  ])
})

it('refuses what is not there, what is said twice and what says nothing', () => {
  expect(why(map, files.slice(0, 2))).toEqual(['11 names scripts/names.ts, which is not there'])
  expect(why(`${map}- \`names.ts\`: once more, with words\n`)).toEqual(['11 names scripts/names.ts twice'])
  expect(why(map.replace('the one error class', ''))).toEqual([
    '6 says nothing about packages/core/src/errors.ts',
  ])
})
