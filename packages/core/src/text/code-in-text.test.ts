import { describe, expect, it } from 'vitest'
import { closeCodeBlock, findFencedLines, removeCodeBlocks } from './code-in-text.ts'

describe('a code block', () => {
  it.each([
    ['a block in a list', '- ```sh\n  x\n  ```\nend', [0, 1, 2], 'end', ''],
    ['a block that contains another fence', '````\n```sh\nx\n````\nend', [0, 1, 2, 3], 'end', ''],
    ['a block that is never closed', 'start\n```sh\nx', [], 'start', '\n```'],
    ['an open block in a list', 'start\n- ```\n  x', [], 'start', '\n```'],
    ['a closed block inside an open one', '~~~~\n```\nx\n```', [1, 2, 3], '', '\n~~~~'],
    ['no block', 'one ``` two', [], 'one ``` two', ''],
  ])('is told the same way by all who ask: %s', (_, text, fenced, without, closing) => {
    expect([...findFencedLines(text.split('\n'))]).toEqual(fenced)
    expect(removeCodeBlocks(text)).toBe(without)
    expect(closeCodeBlock(text)).toBe(`${text}${closing}`)
  })
})

it('many fences that nothing closes are read at once', () => {
  const text = '```js\n'.repeat(50_000)
  const started = process.cpuUsage()
  expect(closeCodeBlock(text)).toBe(`${text}\n\`\`\``)
  expect(process.cpuUsage(started).user).toBeLessThan(3_000_000)
})
