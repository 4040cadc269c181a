/** Reasoning that is bound to its account and its items, stored responses, and keys. */
import { createSimulator, type Script } from '@tidemark/simulator'
import { describe, expect, it } from 'vitest'
import { simulate } from './ask.ts'
import { connect, FUNCTION, functionOutput, OLD_MODEL, postOpenai, postResponse } from './openai-requests.ts'

const user = { role: 'user', content: 'hi' }

/** Thinks and calls a tool. */
const thinker: Script = () => ({
  blocks: [
    { type: 'thinking', thinking: 'A file.' },
    { type: 'tool_use', name: 'read', input: {} },
  ],
})

describe('reasoning', () => {
  const accounts = {
    one: { organization: 'org_1', workspace: 'w' },
    two: { organization: 'org_2', workspace: 'w' },
  }
  const key = (name: string): object => ({ authorization: `Bearer ${name}` })

  /** Returns the items of a first response, with the output of its call. */
  async function begin(
    store = false,
  ): Promise<{ simulator: ReturnType<typeof simulate>; items: readonly Record<string, unknown>[] }> {
    const simulator = createSimulator({ script: thinker, accounts })
    const { body } = await postResponse(simulator, { input: 'hi', store, tools: [FUNCTION] }, key('one'))
    const [reasoning, call] = body.output
    return { simulator, items: [reasoning, call, functionOutput(call.call_id)] as never }
  }

  it('is accepted from the account that it was made for, and refused from another', async () => {
    const { simulator, items } = await begin()
    const input = [user, ...items]
    expect((await postResponse(simulator, { input }, key('one'))).status).toBe(200)
    expect(await postResponse(simulator, { input }, key('two'))).toMatchObject({
      status: 400,
      body: { error: { code: 'invalid_encrypted_content' } },
    })
  })

  it('is refused if one character of it was changed', async () => {
    const { simulator, items } = await begin()
    const [reasoning, ...rest] = items
    const sealed = String(reasoning?.encrypted_content)
    const changed = `${sealed.slice(0, 40)}${sealed[40] === 'A' ? 'B' : 'A'}${sealed.slice(41)}`
    const input = [user, { ...reasoning, encrypted_content: changed }, ...rest]
    expect(await postResponse(simulator, { input }, key('one'))).toMatchObject({
      status: 400,
      body: { error: { code: 'invalid_encrypted_content' } },
    })
  })

  it('is refused without the item that followed it', async () => {
    const { simulator, items } = await begin()
    for (const input of [
      [user, items[0]],
      [user, items[0], user],
    ])
      expect(await postResponse(simulator, { input }, key('one'))).toMatchObject({
        status: 400,
        body: {
          error: {
            message: `Item '${items[0]?.id}' of type 'reasoning' was provided without its required following item.`,
            param: 'input',
          },
        },
      })
  })

  it('must be there with its call, unless the call has no id', async () => {
    const { simulator, items } = await begin()
    const [reasoning, call, output] = items
    expect(await postResponse(simulator, { input: [user, call, output] }, key('one'))).toMatchObject({
      status: 400,
      body: {
        error: {
          message: `Item '${call?.id}' of type 'function_call' was provided without its required 'reasoning' item: '${reasoning?.id}'.`,
        },
      },
    })
    const { id: _id, ...anonymous } = call ?? {}
    expect((await postResponse(simulator, { input: [user, anonymous, output] }, key('one'))).status).toBe(200)
  })

  it('can be a reference if it was stored, for its own account only', async () => {
    const { simulator, items } = await begin(true)
    const input = [user, { type: 'item_reference', id: items[0]?.id }, ...items.slice(1)]
    expect((await postResponse(simulator, { input }, key('one'))).status).toBe(200)
    expect((await postResponse(simulator, { input }, key('two'))).status).toBe(404)
    const passing = await begin(false)
    const again = [user, { type: 'item_reference', id: passing.items[0]?.id }, ...passing.items.slice(1)]
    expect((await postResponse(passing.simulator, { input: again }, key('one'))).status).toBe(404)
  })

  it('is opened again by a server that was restarted', async () => {
    const { items } = await begin()
    const restarted = createSimulator({ script: thinker, accounts })
    expect((await postResponse(restarted, { input: [user, ...items] }, key('one'))).status).toBe(200)
  })
})

describe('a previous response', () => {
  it('brings its calls, whose outputs are then accepted and needed', async () => {
    const simulator = createSimulator({ script: thinker })
    const first = await postResponse(simulator, { input: 'hi', tools: [FUNCTION] })
    const { id, output } = first.body
    const answered = { input: [functionOutput(output[1].call_id)], previous_response_id: id }
    expect((await postResponse(simulator, answered)).status).toBe(200)
    expect(await postResponse(simulator, { input: 'on', previous_response_id: id })).toMatchObject({
      status: 400,
      body: { error: { message: `No tool output found for function call ${output[1].call_id}.` } },
    })
  })

  it('is not found if it was not stored', async () => {
    const simulator = simulate()
    const { body } = await postResponse(simulator, { input: 'hi', store: false })
    expect(await postResponse(simulator, { input: 'on', previous_response_id: body.id })).toMatchObject({
      status: 400,
      body: { error: { code: 'previous_response_not_found' } },
    })
  })
})

describe('keys', () => {
  it('are needed, and must be known if accounts are', async () => {
    const simulator = simulate({ accounts: { known: { organization: 'o', workspace: 'w' } } })
    const body = { model: OLD_MODEL, input: 'hi' }
    const without = await postOpenai(simulator, '/responses', body, { authorization: '' })
    expect(without.status).toBe(401)
    await expect(connect(simulator, 'other').responses.create(body)).rejects.toMatchObject({
      status: 401,
      code: 'invalid_api_key',
    })
    await expect(connect(simulator, 'known').responses.create(body)).resolves.toMatchObject({
      status: 'completed',
    })
  })
})
