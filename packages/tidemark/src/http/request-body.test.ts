import {
  type AssembledRequest,
  assembleRequest,
  callOf,
  createPolicy,
  createProfile,
  flatten,
  frontOf,
  openEpoch,
} from '@tidemark/core'
import { describe, expect, it } from 'vitest'
import { Teller } from '../testing/teller.ts'
import { createBodyWriter } from './request-body.ts'

const profile = createProfile()
const epoch = openEpoch(
  {
    sections: [{ name: 'rules', part: 'static', text: 'You help.' }],
    tools: [{ name: 'Read', input_schema: { type: 'object' } }],
    model: 'model-a',
    parameters: { max_tokens: 1000, betas: ['b-1'] },
  },
  profile,
)
const front = frontOf({ uuid: 'e', epoch, parameters: epoch.parameters, isFresh: false })

function requestOf(teller: Teller): AssembledRequest {
  const { markers } = createPolicy({}).cache
  return assembleRequest({ front, flat: flatten(teller.view), profile, markers, ttl: '5m', clears: true })
}

function tellerOf(name: string): Teller {
  const teller = new Teller(name)
  teller.user(`hello from ${name}`)
  return teller
}

describe('the body of a call', () => {
  it('is the same whether it is grown or spelled from the payload, also where sessions take turns', () => {
    const tellers = [tellerOf('one'), tellerOf('two')]
    const write = createBodyWriter()
    for (let turn = 0; turn < 6; turn += 1) {
      for (const teller of tellers) {
        const call = callOf(requestOf(teller))
        const plain = createBodyWriter()({ payload: call.payload, raw: call.raw })
        expect(write(call)).toEqual(plain)
        expect(JSON.parse(plain.text)).toMatchObject({ model: 'model-a', stream: true })
        teller.assistant(teller.id('msg'), [{ type: 'text', text: `answer ${turn}` }])
        teller.user('go on')
      }
    }
  })

  it('spells no payload where the request is there', () => {
    const call = callOf(requestOf(tellerOf('one')))
    const refusing = {
      request: call.request,
      get payload(): never {
        throw new Error('nobody asked for it')
      },
    }
    expect(createBodyWriter()(refusing).betas).toEqual(['b-1'])
  })
})
