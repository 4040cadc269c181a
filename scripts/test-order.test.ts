import { expect, it } from 'vitest'
import { putUnitTestsLast } from './test-order.ts'

it('tests beside a source file run last; otherwise the order stays as it was', () => {
  const files = [
    '/any/packages/core/src/log/record.test.ts',
    '/any/packages/agent/test/mcp.test.ts',
    '/any/packages/core/src/log/block.test.ts',
    '/any/test/golden/golden.test.ts',
  ]
  expect(putUnitTestsLast(files, (path) => path)).toEqual([files[1], files[3], files[0], files[2]])
})
