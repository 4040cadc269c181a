import { expect, it } from 'vitest'
import { checkCycles } from './cycles.ts'

const files = (texts: Record<string, string>) =>
  Object.entries(texts).map(([path, text]) => ({ path: `packages/core/src/${path}`, text }))

it('lets a diamond pass', () => {
  const diamond = files({
    'a.ts': "import './b.ts'\nimport './c.ts'",
    'b.ts': "import './d.ts'",
    'c.ts': "import './d.ts'",
    'd.ts': '',
  })
  expect(checkCycles(diamond)).toEqual([])
})

it('names the whole way round, types included', () => {
  const round = files({
    'a.ts': "import './view/b.ts'",
    'view/b.ts': "import type { C } from './c.ts'",
    'view/c.ts': "\nexport { A } from '../a.ts'",
  })
  const [a, b, c] = round.map(({ path }) => path)
  expect(checkCycles(round)).toEqual([{ file: c, line: 2, why: `closes a cycle: ${a} → ${b} → ${c} → ${a}` }])
})

it('finds a file that imports itself', () => {
  expect(checkCycles(files({ 'a.ts': "import './a.ts'" }))).toHaveLength(1)
})

it('finds a cycle that is not reachable from the first file', () => {
  expect(
    checkCycles(files({ 'a.ts': '', 'b.ts': "import './c.ts'", 'c.ts': "import './b.ts'" })),
  ).toHaveLength(1)
})
