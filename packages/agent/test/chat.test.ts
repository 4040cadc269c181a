/** `tidemark chat`: every option and every way to fail, against the simulator. */
import { appendFileSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { echo, type Script } from '@tidemark/simulator'
import { describe, expect, it } from 'vitest'
import { createChatWorld, playSteps } from './chat-world.ts'

const READ = { Read: { file_path: 'a.txt' } }

describe('output', () => {
  it('text is the answer alone, and nothing else is printed', async () => {
    const { run, write } = await createChatWorld(playSteps(READ, 'All is well.'))
    write('a.txt', 'hello')
    expect(await run('chat', '-p', 'Look.')).toMatchObject({ code: 0, out: 'All is well.\n', err: '' })
  })

  it('text has one line for each compaction, on standard error, that says with what', async () => {
    let file = 0
    const { run, write } = await createChatWorld(() => {
      file += 1
      if (file > 14) return { blocks: [{ type: 'text', text: 'All is well.' }] }
      return { blocks: [{ type: 'tool_use', name: 'Read', input: { file_path: `${file}.txt` } }] }
    })
    for (let name = 1; name <= 14; name += 1) write(`${name}.txt`, 'a line of text\n'.repeat(800))
    const { code, out, err } = await run('chat', '-p', 'Look.', '--window', '40000')
    expect([code, out]).toEqual([0, 'All is well.\n'])
    expect(err).toMatch(/^(?:tidemark: Compacted: \S+k? → \S+k? tokens, with the notes of this session\n)+$/)
  })

  it('json is one value with result, session, cost and usage', async () => {
    const { run, write, server } = await createChatWorld(playSteps(READ, 'All is well.'))
    write('a.txt', 'hello')
    const { code, lines } = await run('chat', '-p', 'Look.', '--output-format', 'json')
    expect([code, lines.length]).toEqual([0, 1])
    const billed = server.simulator.requests.reduce((sum, { cost }) => sum + (cost?.total ?? 0), 0)
    expect(lines[0]).toMatchObject({
      type: 'result',
      subtype: 'success',
      is_error: false,
      result: 'All is well.',
      stop_reason: 'end_turn',
      session_id: expect.stringMatching(/^chat-\d{8}-\d{6}-[0-9a-f]{6}$/),
      num_turns: 2,
      total_cost_usd: expect.closeTo(billed, 9),
      usage: { output_tokens: expect.any(Number), cache_read_input_tokens: expect.any(Number) },
      compactions: 0,
      permission_denials: [],
    })
  })

  it('stream-json has a line for the start, for each message in order, and for the result', async () => {
    const { run, write, folder } = await createChatWorld(playSteps(READ, 'All is well.'))
    write('a.txt', 'hello')
    const { lines } = await run('chat', '-p', 'Look.', '--output-format', 'stream-json')
    const kinds = lines.map(({ type, subtype, message }) => {
      const [block] = Array.isArray(message?.content) ? message.content : []
      return [type, subtype ?? block?.type ?? 'text'].join(' ')
    })
    expect(kinds).toEqual([
      'system init',
      'user text',
      'assistant tool_use',
      'user tool_result',
      'assistant text',
      'result success',
    ])
    expect(lines[0]).toMatchObject({
      cwd: folder,
      model: 'claude-sonnet-5-5',
      tools: expect.arrayContaining(['Read', 'history']),
    })
    expect(new Set(lines.map(({ session_id }) => session_id)).size).toBe(1)
  })
})

describe('prompts', () => {
  it('come from standard input if -p has no text', async () => {
    const { pipe } = await createChatWorld(echo)
    expect(await pipe('What is this?', { prompt: true })).toMatchObject({ code: 0, out: 'What is this?\n' })
  })

  it.each([[{ prompt: '' }], [{ prompt: true as const }]])('an empty one is refused: %j', async (choices) => {
    const { pipe, server } = await createChatWorld(echo)
    expect(await pipe(' \n', choices)).toMatchObject({
      code: 2,
      err: 'tidemark: the prompt is empty: give one after -p, or on standard input.\n',
    })
    expect(server.simulator.requests).toEqual([])
  })

  it('without one, chat says how to give it', async () => {
    const { run } = await createChatWorld(echo)
    expect(await run('chat')).toMatchObject({
      code: 2,
      err: expect.stringContaining('Give a prompt with -p'),
    })
  })

  it('arrive as JSON lines, each with its own result in one session', async () => {
    const { pipe } = await createChatWorld(echo)
    const lines = ['One', [{ type: 'text', text: 'Two' }]].map((content) =>
      JSON.stringify({ type: 'user', message: { role: 'user', content } }),
    )
    const printed = await pipe(`${lines[0]}\n\n${lines[1]}\n`, {
      inputFormat: 'stream-json',
      outputFormat: 'json',
    })
    expect(printed.lines.map(({ result }) => result)).toEqual(['One', 'Two'])
    expect(new Set(printed.lines.map(({ session_id }) => session_id)).size).toBe(1)
  })

  it.each([
    ['no JSON', 'hello', 'line 2 of the input is not JSON'],
    ['a number', '7', 'line 2 of the input is no prompt'],
    ['null', 'null', 'line 2 of the input is no prompt'],
    ['another type', '{"type":"assistant"}', 'line 2 of the input is no prompt'],
    ['no blocks', '{"type":"user","message":{"content":[]}}', 'line 2 of the input is no prompt'],
  ])('a line that is %s is named, and what came before it is done', async (_, line, said) => {
    const { pipe } = await createChatWorld(echo)
    const good = JSON.stringify({ type: 'user', message: { role: 'user', content: 'One' } })
    const printed = await pipe(`${good}\n${line}\n`, { inputFormat: 'stream-json', outputFormat: 'json' })
    expect(printed.code).toBe(1)
    expect(printed.err).toContain(said)
    expect(printed.lines.map(({ result }) => result)).toEqual(['One'])
  })
})

describe('sessions', () => {
  it('--resume goes on with the conversation, and --continue with the newest one of this folder', async () => {
    const { run } = await createChatWorld(({ messages }) => ({
      blocks: [{ type: 'text', text: `${messages.length}` }],
    }))
    const first = (await run('chat', '-p', 'One', '--output-format', 'json')).lines[0]
    expect(await run('chat', '-p', 'Two', '--resume', first.session_id)).toMatchObject({
      code: 0,
      out: '3\n',
    })
    const other = (await run('chat', '-p', 'Other', '--output-format', 'json')).lines[0]
    const continued = (await run('chat', '-p', 'More', '-c', '--output-format', 'json')).lines[0]
    expect(continued).toMatchObject({ session_id: other.session_id, result: '3' })
  })

  it('--resume of a session that was made in another folder says so and goes on', async () => {
    const { run, home, folder } = await createChatWorld(echo)
    const first = (await run('chat', '-p', 'One', '--output-format', 'json')).lines[0]
    const log = join(home, 'sessions', `${first.session_id}.jsonl`)
    expect((await run('chat', '-p', 'Two', '--resume', first.session_id)).err).toBe('')
    rmSync(join(home, 'sessions', first.session_id, 'agent.json'))
    writeFileSync(log, readFileSync(log, 'utf8').replaceAll(`"cwd":"${folder}"`, '"cwd":"/else where"'))
    const { code, err } = await run('chat', '-p', 'Three', '--resume', first.session_id)
    expect(code).toBe(0)
    expect(err).toContain(`was in /else where, and goes on in ${folder}: paths in it may not be here.`)
    expect(err).toContain("--cwd '/else where'")
  })

  it.each([['unknown'], ['../../etc/passwd'], ['']])('--resume %j is refused', async (id) => {
    const { run } = await createChatWorld(echo)
    expect(await run('chat', '-p', 'Two', '--resume', id)).toMatchObject({
      code: 1,
      err: `tidemark: there is no session ${id}. tidemark sessions lists them.\n`,
    })
  })

  it('--continue passes over a session whose file about it was cut off by a kill', async () => {
    const { run, home } = await createChatWorld(echo)
    const [first, second] = [
      (await run('chat', '-p', 'One', '--output-format', 'json')).lines[0],
      (await run('chat', '-p', 'Two', '--output-format', 'json')).lines[0],
    ]
    writeFileSync(join(home, 'sessions', second.session_id, 'agent.json'), '')
    const continued = (await run('chat', '-p', 'More', '-c', '--output-format', 'json')).lines[0]
    expect(continued).toMatchObject({ session_id: first.session_id })
  })

  it('damage of the log is said when the session goes on', async () => {
    const { run, home } = await createChatWorld(echo)
    const { session_id: id } = (await run('chat', '-p', 'One', '--output-format', 'json')).lines[0]
    appendFileSync(join(home, 'sessions', `${id}.jsonl`), 'nonsense\n')
    const streamed = await run('chat', '-p', 'Two', '--resume', id, '--output-format', 'stream-json')
    expect(streamed.lines[1]).toMatchObject({
      subtype: 'notice',
      message: expect.stringContaining('damaged'),
    })
    expect(await run('chat', '-p', 'Three', '--resume', id)).toMatchObject({
      code: 0,
      out: 'Three\n',
      err: expect.stringContaining('The log of this session is damaged in one place: '),
    })
  })

  it('--continue in a folder without sessions is refused', async () => {
    const { run, folder } = await createChatWorld(echo)
    const { code, err } = await run('chat', '-p', 'Two', '--continue')
    expect([code, err]).toEqual([
      1,
      `tidemark: there is no session of this folder to continue: ${folder}. Leave --continue out to begin one.\n`,
    ])
  })

  it('--max-turns stops, says how to go on, and an empty prompt goes on', async () => {
    const { run, write } = await createChatWorld(playSteps(READ, READ, READ, 'All is well.'))
    write('a.txt', 'hello')
    const stopped = await run(
      'chat',
      '-p',
      'Look.',
      '--max-turns',
      '2',
      '--window',
      '90000',
      '--output-format',
      'json',
    )
    const { session_id: id, subtype, result, num_turns } = stopped.lines[0]
    expect([stopped.code, subtype, num_turns]).toEqual([1, 'error_max_turns', 2])
    expect(result).toMatch(
      /^Stopped after 2 calls to the model, the limit of --max-turns\. To go on: tidemark chat --resume \S+ -p "" --window 90000 --cwd \S+$/,
    )
    expect(result).toContain(` --resume ${id} `)
    expect(await run('chat', '--resume', id, '-p', '')).toMatchObject({ code: 0, out: 'All is well.\n' })
    expect(await run('chat', '--resume', id, '-p', '')).toMatchObject({
      code: 1,
      err: 'tidemark: There is nothing to continue: the last answer is complete. Give a prompt after -p.\n',
    })
  })

  it('are listed, inspected with their folder as the project, and exported like any other', async () => {
    const { run, write, home, folder } = await createChatWorld(playSteps(READ, 'All is well.'))
    write('a.txt', 'hello')
    const { session_id: id } = (await run('chat', '-p', 'Look.', '--output-format', 'json')).lines[0]
    const log = join(home, 'sessions', `${id}.jsonl`)
    expect(JSON.parse((await run('sessions', '--json')).out).sessions).toMatchObject([{ id }])
    expect(JSON.parse((await run('inspect', log, '--json')).out).sessions).toMatchObject([
      { project: folder },
    ])
    expect((await run('export', log)).out).toContain('All is well.')
  })
})

describe('what is wrong is said before anything is sent', () => {
  it.each([
    [['--max-turns', '0'], 2, 'Expected a whole number above 0'],
    [['--window', 'big'], 2, 'Expected a whole number of tokens'],
    [['--base-url', 'ftp://x'], 2, 'Expected an http or https URL'],
    [['--output-format', 'xml'], 2, 'Allowed choices are text, json, stream-json'],
    [['--input-format', 'xml'], 2, 'Allowed choices are text, stream-json'],
    [['--permission-mode', 'yolo'], 2, 'Allowed choices are default, accept-edits, allow-all'],
    [['--allowed-tools', 'Bash('], 2, 'cannot read the rule "Bash("'],
    [['--model', 'nosuch'], 1, 'nosuch is not in the catalogue: give --window TOKENS, or another --model\n'],
    [['--what'], 2, "unknown option '--what'"],
  ])('%j', async (args, code, said) => {
    const { run, server } = await createChatWorld(echo)
    const printed = await run('chat', '-p', 'Hello', ...args)
    expect([printed.code, printed.out]).toEqual([code, ''])
    expect(printed.err).toContain(said)
    expect(server.simulator.requests).toEqual([])
  })

  it('a folder that is none', async () => {
    const { pipe } = await createChatWorld(echo)
    expect(await pipe('', { prompt: 'Hello', cwd: '/no/such/folder' })).toMatchObject({
      code: 2,
      err: 'tidemark: --cwd: /no/such/folder is not a folder.\n',
    })
  })

  it('no key, if the server is not on this machine', async () => {
    const { run } = await createChatWorld(echo)
    const printed = await run('chat', '-p', 'Hello', '--base-url', 'https://api.example.com')
    expect([printed.code, printed.out]).toEqual([1, ''])
    expect(printed.err).toMatch(/^tidemark: no key for the provider\./)
  })

  it.each([
    ['tidemark', {}],
    ['npx tidemark', { npm_command: 'exec' }],
  ])(
    'no key: %s prints what to type instead, in lines that can be copied at 80 columns',
    async (name, more) => {
      const { pipe, env } = await createChatWorld(echo)
      const { ANTHROPIC_BASE_URL: _, ...own } = env
      const { code, err } = await pipe('', { prompt: 'Hello' }, { env: { ...own, ...more } })
      const [first, ...lines] = err.trimEnd().split('\n')
      expect([code, first]).toEqual([1, expect.stringMatching(/^tidemark: no key for the provider\. /)])
      expect(lines.map((line) => line.split(/ +# /)[0]?.trim())).toEqual([
        `${name} tour --resume`,
        `${name} simulate --script fix`,
        'export ANTHROPIC_API_KEY=…',
      ])
      expect(Math.max(...err.split('\n').map((line) => line.length))).toBeLessThan(80)
    },
  )

  it.each([
    ['{', 'is not JSON'],
    ['[]', 'must contain one JSON object'],
    ['{"colour":"red"}', 'has the unknown field colour'],
    ['{"permissions":{"allow":["Bash("]}}', 'cannot read the rule "Bash("'],
    ['{"policy":{"compact":{"nope":1}}}', 'nope'],
    ['{"subagents":{"maxRunning":0}}', 'maxRunning (from 1)'],
  ])('a settings file that contains %s', async (content, said) => {
    const { run, env, server } = await createChatWorld(echo)
    const path = join(env.HOME ?? '', '.config', 'tidemark', 'settings.json')
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, content)
    const printed = await run('chat', '-p', 'Hello')
    expect([printed.code, printed.out]).toEqual([1, ''])
    expect(printed.err).toContain(said)
    expect(server.simulator.requests).toEqual([])
  })

  it('a provider that refuses: the message, and how to go on', async () => {
    const { run, server } = await createChatWorld(echo)
    server.simulator.queueFaults({ type: 'status', status: 401 })
    const { code, lines } = await run('chat', '-p', 'Hello', '--output-format', 'json')
    expect([code, lines[0].subtype, lines[0].is_error]).toEqual([1, 'error', true])
    expect(lines[0].result).toMatch(
      /invalid x-api-key\. To go on: tidemark chat --resume chat-\S+ -p "" --cwd \S+$/,
    )
  })
})

describe('permissions', () => {
  it.each([
    ['Write', { Write: { file_path: 'new.txt', content: 'x' } }, 'Edit'],
    ['Bash', { Bash: { command: 'npm test -- --watch' } }, 'Bash(npm test:*)'],
    ['Bash', { Bash: { command: 'echo hi > x' } }, 'Bash(echo hi > x)'],
    ['Bash', { Bash: { command: './a.sh; cat b.txt' } }, "Bash(./a.sh)' 'Bash(cat:*)"],
    ['WebFetch', { WebFetch: { url: 'https://example.com/a' } }, 'WebFetch(domain:example.com)'],
    ['Read', { Read: { file_path: '/etc/hostname' } }, 'Read(/etc/hostname)'],
    ['Glob', { Glob: { pattern: '/etc/*' } }, 'Glob(/etc)'],
  ])(
    '%s without a rule is refused, and model and user are told the rule that allows it',
    async (tool, step, rule) => {
      const { run, read, lastResults } = await createChatWorld(playSteps(step, 'Then not.'))
      const printed = await run('chat', '-p', 'Do it.')
      expect(printed).toMatchObject({ code: 0, out: 'Then not.\n' })
      expect(printed.err).toBe(
        `tidemark: 1 tool call was refused. To allow them: --allowed-tools '${rule}'\n`,
      )
      expect(lastResults()[0]).toContain(
        `Nobody can be asked. The user can allow it with --allowed-tools '${rule}'`,
      )
      expect(read('new.txt')).toBeNull()
      const json = (await run('chat', '-p', 'Do it.', '--output-format', 'json')).lines[0]
      expect(json.permission_denials).toMatchObject([{ tool_name: tool }])
    },
  )

  it('the rule that was suggested allows the call', async () => {
    const { run, read } = await createChatWorld(
      playSteps({ Write: { file_path: 'new.txt', content: 'x' } }, 'Done.'),
    )
    expect(await run('chat', '-p', 'Do it.', '--allowed-tools', 'Edit')).toMatchObject({ code: 0, err: '' })
    expect(read('new.txt')).toBe('x')
  })

  it('accept-edits allows edits in the folder and no commands; allow-all allows both', async () => {
    const step = { Write: { file_path: 'new.txt', content: 'x' }, Bash: { command: 'touch made' } }
    const { run, read } = await createChatWorld(playSteps(step, 'Done.'))
    await run('chat', '-p', 'Do it.', '--permission-mode', 'accept-edits')
    expect([read('new.txt'), read('made')]).toEqual(['x', null])
    await run('chat', '-p', 'Do it.', '--permission-mode', 'allow-all')
    expect(read('made')).toBe('')
  })

  it('a deny rule of the project holds even if everything is allowed', async () => {
    const { run, write, lastResults } = await createChatWorld(
      playSteps({ Read: { file_path: '.env' } }, 'Done.'),
    )
    write('.env', 'SECRET=1')
    write('.tidemark/settings.json', '{"permissions":{"deny":["Read(.env)"]}}')
    const printed = await run('chat', '-p', 'Do it.', '--permission-mode', 'allow-all')
    expect(printed.code).toBe(0)
    expect(lastResults()[0]).toContain('The rule Read(.env) forbids it.')
    expect(lastResults()[0]).not.toContain('SECRET')
  })

  it('what an untrusted project allows does not count, and that is said', async () => {
    const { run, read, write } = await createChatWorld(
      playSteps({ Write: { file_path: 'new.txt', content: 'x' } }, 'Done.'),
    )
    write('.tidemark/settings.json', '{"permissions":{"allow":["Edit"]}}')
    const { err } = await run('chat', '-p', 'Do it.')
    expect(read('new.txt')).toBeNull()
    expect(err).toContain('tidemark trust')
  })

  it.each([
    ['an absolute path', '/etc/hostname'],
    ['a path that climbs out', '../secret.txt'],
    ['a link to a file outside', 'link.txt'],
    ['a file behind a link to a folder outside', 'folder/secret.txt'],
  ])('%s is refused, and its text is not shown', async (_, path) => {
    const {
      run,
      folder,
      lastResults,
      path: inFolder,
    } = await createChatWorld(
      playSteps({ Read: { file_path: path } }, { Grep: { pattern: 'SECRET' } }, 'Done.'),
    )
    const outside = dirname(folder)
    writeFileSync(join(outside, 'secret.txt'), 'SECRET')
    symlinkSync(join(outside, 'secret.txt'), inFolder('link.txt'))
    symlinkSync(outside, inFolder('folder'))
    await run('chat', '-p', 'Do it.', '--allowed-tools', 'Read', 'Edit')
    const [read, found] = lastResults()
    expect(read).toContain('is outside the working directory.')
    expect(`${read}${found}`).not.toMatch(/^SECRET|:SECRET/m)
  })

  it('writing through a link that leads outside is refused', async () => {
    const { run, folder, path, lastResults } = await createChatWorld(
      playSteps({ Write: { file_path: 'link.txt', content: 'x' } }, 'Done.'),
    )
    const target = join(dirname(folder), 'target.txt')
    symlinkSync(target, path('link.txt'))
    await run('chat', '-p', 'Do it.', '--permission-mode', 'accept-edits')
    expect(lastResults()[0]).toContain(`${target} is outside the working directory.`)
  })
})

describe('language and outputStyle', () => {
  const showSystem: Script = ({ system }) => ({ blocks: [{ type: 'text', text: JSON.stringify(system) }] })
  const style = '{"language":"Swedish","outputStyle":"Write in rhymes."}'

  it('of your settings are part of the system prompt', async () => {
    const { run, env } = await createChatWorld(showSystem)
    mkdirSync(join(env.HOME ?? '', '.config/tidemark'), { recursive: true })
    writeFileSync(join(env.HOME ?? '', '.config/tidemark/settings.json'), style)
    const { code, out } = await run('chat', '-p', 'Hello')
    expect(code).toBe(0)
    expect(out).toContain('Answer in Swedish; leave code and names as they are.')
    expect(out).toContain('Write in rhymes.')
  })

  it('of a project are not used before you have trusted it', async () => {
    const { run, write, folder } = await createChatWorld(showSystem)
    write('.tidemark/settings.json', style)
    const before = await run('chat', '-p', 'Hello')
    expect(before.err).toContain('want to set language and outputStyle, which is not applied')
    expect(before.out).not.toMatch(/Swedish|rhymes/)
    await run('trust', folder, '--yes')
    expect((await run('chat', '-p', 'Hello')).out).toMatch(/Swedish[\s\S]*rhymes/)
  })

  it('that say nothing are refused with the file and the field', async () => {
    const { run, write } = await createChatWorld(showSystem)
    write('.tidemark/settings.json', '{"outputStyle":" "}')
    const { code, err } = await run('chat', '-p', 'Hello')
    expect(code).not.toBe(0)
    expect(err).toContain('settings.json outputStyle: expected a text about how answers are to be written.')
  })
})

it('--append-system-prompt is sent, and --model and --window are used', async () => {
  const { run, server } = await createChatWorld(({ system }) => ({
    blocks: [{ type: 'text', text: JSON.stringify(system).includes('Speak French.') ? 'Oui.' : 'Yes.' }],
  }))
  const given = ['--append-system-prompt', 'Speak French.', '--model', 'claude-opus-5', '--window', '50000']
  expect(await run('chat', '-p', 'Hello', ...given)).toMatchObject({ code: 0, out: 'Oui.\n' })
  expect(server.simulator.requests[0]?.model).toBe('claude-opus-5')
})
