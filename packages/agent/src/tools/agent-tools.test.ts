/** The tools in a real session, with the simulator in place of the provider. */
import { createSimulator, type Script, withSummaries } from '@tidemark/simulator'
import { anthropic, createTidemark } from 'tidemark'
import { expect, it } from 'vitest'
import { createAgentFolder } from '../../test/agent-folder.ts'
import { createAgentTools, createToolSessionOptions } from './agent-tools.ts'

type Call = readonly [
  name: string,
  input: Readonly<Record<string, never | string | number | boolean | object>>,
]

/** Opens a session whose model makes the calls that a test puts on its list. */
async function openSession() {
  const folder = createAgentFolder()
  const { environment } = folder
  const calls: Call[] = []
  const script: Script = () => {
    const [name, input] = calls.shift() ?? []
    if (name === undefined) return { blocks: [{ type: 'text', text: 'Done.' }] }
    return { blocks: [{ type: 'tool_use', name, input: input as never }] }
  }
  const simulator = createSimulator({ script: withSummaries(script) })
  const tide = createTidemark({
    model: anthropic('claude-sonnet-5-5', {
      apiKey: 'any',
      fetch: (input, init) => simulator.fetch(input instanceof Request ? input : String(input), init),
    }),
    memory: true,
    env: {},
    ...createToolSessionOptions(environment),
  })
  const session = await tide.open('work')
  const tools = createAgentTools(environment)
  async function run(...wanted: readonly Call[]): Promise<readonly string[]> {
    calls.push(...wanted)
    const results: string[] = []
    const running = session.run('Go on.', { tools })
    for await (const event of running)
      if (event.type === 'tool-ended') results.push(JSON.stringify(event.result.content))
    const outcome = await running.outcome
    expect(outcome).toMatchObject({ ok: true })
    return results
  }
  return { folder, session, simulator, run }
}

it('every tool definition is accepted, and a change is made from reading to testing', async () => {
  const { folder, simulator, run } = await openSession()
  folder.write('sum.mjs', 'export const sum = (a, b) => a - b\n')
  folder.write('test.mjs', "import { sum } from './sum.mjs'\nif (sum(1, 2) !== 3) throw new Error('wrong')\n")
  const results = await run(
    ['Bash', { command: 'node test.mjs' }],
    ['Grep', { pattern: 'sum =' }],
    ['Read', { file_path: 'sum.mjs' }],
    ['Edit', { file_path: 'sum.mjs', old_string: 'a - b', new_string: 'a + b' }],
    ['Bash', { command: 'node test.mjs && echo passed', timeout: '5000' }],
  )
  expect(results[0]).toContain('Error: wrong')
  expect(results[1]).toBe('"sum.mjs"')
  expect(results[4]).toBe('"passed"')
  expect(simulator.requests.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200])
})

it('a file is answered as unchanged until a compaction removes its text from the context', async () => {
  const { folder, session, run } = await openSession()
  folder.write('a.txt', 'the text\n'.repeat(3_000))
  const read: Call = ['Read', { file_path: 'a.txt' }]
  const [first, second] = await run(read, read)
  expect(first).toContain('2000\\tthe text')
  expect(second).toMatch(/^"File unchanged since you last read it/)
  expect(await session.compact()).toMatchObject({ ok: true })
  const [third, fourth] = await run(
    ['Edit', { file_path: 'a.txt', old_string: 'zzz', new_string: 'y' }],
    read,
  )
  expect(fourth).toBe(first)
  expect(third).toContain('old_string is not in the file')
})
