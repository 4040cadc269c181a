import { expect, it } from 'vitest'
import { outputFailure } from './run.ts'

const failed = (code: string, message: string) => Object.assign(new Error(message), { code })

it('a reader that has seen enough is no fault', () => {
  expect(outputFailure(failed('EPIPE', 'broken pipe'))).toEqual({ code: undefined, line: '' })
})

it('any other fault of standard output is one line', () => {
  expect(outputFailure(failed('ENOSPC', 'ENOSPC: no space left on device, write'))).toEqual({
    code: 1,
    line: 'tidemark: the output could not be written: ENOSPC: no space left on device, write\n',
  })
})
