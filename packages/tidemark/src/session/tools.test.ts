import { describe, expect, it } from 'vitest'
import { createToolset, type ToolOptions, type Tools } from './tools.ts'

const call = { type: 'tool_use' as const, id: 'toolu_1', name: 'time', input: { zone: 'UTC' } }

describe('tools', () => {
  it('given by name become definitions, and each runs its own calls', async () => {
    const { definitions, run } = createToolset({
      tools: {
        time: {
          description: 'The time',
          run: ({ zone }: { zone: string }, { id }) => `${id}: noon in ${zone}`,
        },
      },
    })
    expect(definitions).toEqual([
      { name: 'time', description: 'The time', input_schema: { type: 'object', properties: {} } },
    ])
    expect(await run(call)).toEqual({ content: 'toolu_1: noon in UTC' })
    expect(await run({ ...call, name: 'other' })).toEqual({
      content: 'There is no tool other.',
      is_error: true,
    })
  })

  it('given as a function are read again whenever it returns another object', async () => {
    let tools: Tools = {}
    const toolset = createToolset({ tools: () => tools })
    expect([toolset.definitions, toolset.isRunnable]).toEqual([[], false])
    tools = { time: { parallel: true, run: () => 'noon' } }
    const { definitions } = toolset
    expect([definitions.map(({ name }) => name), toolset.isParallel?.('time')]).toEqual([['time'], true])
    expect(toolset.definitions).toBe(definitions)
    expect(await toolset.run(call)).toEqual({ content: 'noon' })
    tools = {}
    expect(await toolset.run(call)).toMatchObject({ is_error: true })
  })

  it('that are found only when they are called run, and are not declared', async () => {
    const time = { run: () => 'noon' }
    const findTool = async (name: string) => (name === 'time' ? time : null)
    for (const tools of [{}, () => ({})]) {
      const toolset = createToolset({ tools, findTool })
      expect([toolset.definitions, toolset.hasTool?.('time')]).toEqual([[], false])
      expect([await toolset.waitForTool?.('time'), await toolset.waitForTool?.('other')]).toEqual([
        true,
        false,
      ])
      expect(await toolset.run(call)).toEqual({ content: 'noon' })
      expect(await toolset.run({ ...call, name: 'other' })).toMatchObject({ is_error: true })
    }
  })

  it('cannot be found when they are called if the others have no functions', () => {
    for (const options of [{}, { tools: [{ name: 'time' }] }])
      expect(() => createToolset({ ...options, findTool: () => null })).toThrow(/findTool: expected tools/)
  })

  it.each<[string, ToolOptions['runTool'], object]>([
    ['a text', () => 'noon', { content: 'noon' }],
    ['blocks', () => [{ type: 'text', text: 'noon' }], { content: [{ type: 'text', text: 'noon' }] }],
    ['a failure', () => ({ content: 'broken', isError: true }), { content: 'broken', is_error: true }],
  ])('given as definitions may return %s', async (_, runTool, answer) => {
    const { run } = createToolset({
      tools: [{ name: 'time' }],
      ...(runTool === undefined ? {} : { runTool }),
    })
    expect(await run(call)).toEqual(answer)
  })

  it.each<[unknown, string]>([
    [{ time: {} }, 'tools.time: expected { description, inputSchema, run(input, { signal }) }.'],
    [[{ description: 'x' }], 'tools: expected definitions with a name, as the Messages API takes them.'],
    ['time', 'tools: expected { name: { description, inputSchema, run } } or definitions.'],
  ])('%j are refused', (tools, message) => {
    expect(() => createToolset({ tools: tools as never })).toThrow(
      expect.objectContaining({ code: 'bad-option', message }),
    )
  })
})
