import { expect, it } from 'vitest'
import { orderByKind } from './test-order.ts'

it('long files run first and tests beside a source file last; otherwise the order stays as it was', () => {
  const files = [
    '/any/packages/core/src/log/record.test.ts',
    '/any/packages/agent/test/chat.test.ts',
    '/any/packages/core/src/log/block.test.ts',
    '/any/test/fuzz/fuzz-session.test.ts',
    '/any/test/golden/golden.test.ts',
  ]
  expect(orderByKind(files, (path) => path)).toEqual([files[4], files[1], files[3], files[0], files[2]])
})
