import { describe, expect, it } from 'vitest'
import { ask, ClaudeLog, CodexLog, errors, files, state, workflow } from './exam-log-builder.ts'

describe('open todos', () => {
  const todos = [
    { content: 'Write the parser', status: 'completed' },
    { content: 'Run tests', status: 'cancelled' },
    { content: 'Run tests again', status: 'in_progress' },
    { content: 'Update the page', status: 'pending' },
  ]
  const log = new ClaudeLog().call('TodoWrite', { todos })

  it('are right in a line with a box, and missing without one', () => {
    expect(ask('todos', log, state('- [>] Run tests  again', '- Update the page', '- [ ] … 1 more'))).toEqual(
      {
        right: ['Run tests again'],
        missing: ['Update the page'],
      },
    )
  })

  it('outside Current state are missing', () => {
    expect(ask('todos', log, workflow('- [ ] Run tests again', '- [ ] Update the page'))).toEqual({
      missing: ['Run tests again', 'Update the page'],
    })
  })

  it('contradict if done ones are noted as open, open ones as done, or nobody wrote them', () => {
    const notes = state('- [ ] Run tests', '- [x] Run tests again', '- [ ] Update the page', '- [ ] Buy milk')
    expect(ask('todos', log, notes)).toEqual({
      right: ['Update the page'],
      contradicted: ['done: Run tests again', 'open: Run tests', 'open: Buy milk'],
    })
  })

  it('may be cut to 200 characters, not to fewer', () => {
    const content = `Find out ${'why '.repeat(80)}`
    const long = new ClaudeLog().call('TodoWrite', { todos: [{ content, status: 'pending' }] })
    expect(ask('todos', long, state(`- [ ] ${content.slice(0, 200)}…`)).right).toHaveLength(1)
    expect(ask('todos', long, state(`- [ ] ${content.slice(0, 150)}…`)).missing).toHaveLength(1)
  })

  it('follow the numbers of tasks, and calls with an error or without a result change nothing', () => {
    const tasks = new ClaudeLog()
      .call('TaskCreate', { subject: 'One' }, 'Task #1 created successfully: One')
      .call('TaskCreate', { subject: 'Two' }, 'Task #2 created successfully: Two')
      .call('TaskCreate', { subject: 'Three' }, 'no such tool', { isError: true })
      .call('TaskUpdate', { taskId: '1', status: 'completed' })
      .call('TaskUpdate', { taskId: '2', subject: 'Second' })
      .call('TodoWrite', { todos: [] }, 'no such tool', { isError: true })
      .start('TaskUpdate', { taskId: '2', status: 'deleted' })
    expect(ask('todos', tasks, state('- [ ] Second'))).toEqual({ right: ['Second'] })
    expect(ask('todos', tasks, state('- [ ] Two', '- [ ] One', '- [ ] Three'))).toEqual({
      missing: ['Second'],
      contradicted: ['open: Two', 'open: One', 'open: Three'],
    })
  })

  it('are those of the last plan in Codex', () => {
    const codex = new CodexLog()
      .call('update_plan', { plan: [{ step: 'Look', status: 'in_progress' }] }, 'Plan updated')
      .call('update_plan', { plan: [{ step: 'Act', status: 'pending' }] }, 'Plan updated')
    expect(ask('todos', codex, state('- [ ] Act'))).toEqual({ right: ['Act'] })
    expect(ask('todos', codex, state('- [ ] Look'))).toEqual({
      missing: ['Act'],
      contradicted: ['open: Look'],
    })
  })
})

describe('edited files', () => {
  const log = new ClaudeLog()
    .call('Edit', { file_path: '/srv/shop/src/cart.ts' })
    .call('Write', { file_path: 'src/cart.ts' })
    .call('Edit', { file_path: '/srv/shop/src/tax.ts' })
    .call('Write', { file_path: '/etc/hosts' }, 'no permission', { isError: true })
    .call('Read', { file_path: '/srv/shop/src/read.ts' })

  it('are one file whether written from the root or from the working directory', () => {
    expect(
      ask('files', log, files('- src/cart.ts: edited twice', '- `/srv/shop/src/tax.ts` (edited)')),
    ).toEqual({
      right: ['/srv/shop/src/cart.ts', '/srv/shop/src/tax.ts'],
    })
  })

  it('may stand behind their folder', () => {
    expect(ask('files', log, files('- src: cart.ts (edited), tax.ts …'))).toEqual({
      right: ['/srv/shop/src/cart.ts', '/srv/shop/src/tax.ts'],
    })
    expect(ask('files', log, files('- lib: cart.ts', '- src: tax.tsx'))).toEqual({
      missing: ['/srv/shop/src/cart.ts', '/srv/shop/src/tax.ts'],
    })
  })

  it('are missing if only a longer path has their name', () => {
    const bare = new ClaudeLog().call('Edit', { file_path: '/srv/shop/README.md' })
    expect(
      ask('files', bare, files('- docs: README.md', '- a.ts: read before README.md')).missing,
    ).toHaveLength(1)
    expect(ask('files', bare, files('- README.md: edited')).right).toHaveLength(1)
    expect(ask('files', bare, files('- .: README.md')).right).toHaveLength(1)
    const notes = files('- old/src/cart.ts: read', '- src/cart.ts.orig: read', '- src/tax.ts: edited')
    expect(ask('files', log, notes)).toEqual({
      right: ['/srv/shop/src/tax.ts'],
      missing: ['/srv/shop/src/cart.ts'],
    })
  })

  it('contradict if a file that was read, or whose edit failed, is noted as edited', () => {
    const notes = files(
      '- src: cart.ts (edited), tax.ts (edited), read.ts (edited)',
      '- /etc/hosts: created',
      '- src/a created one.ts: read',
      '- src/my file.ts: read, edited twice',
    )
    expect(ask('files', log, notes)).toEqual({
      right: ['/srv/shop/src/cart.ts', '/srv/shop/src/tax.ts'],
      contradicted: ['edited: src/read.ts', 'edited: /etc/hosts', 'edited: src/my file.ts'],
    })
  })

  it('are known by patches, unless the patch did not apply', () => {
    const patch = (path: string) => `*** Begin Patch\n*** Update File: ${path}\n@@\n-a\n+b\n*** End Patch`
    const codex = new CodexLog()
      .patch(patch('src/a.ts'), '{"output":"Success.","metadata":{"exit_code":0}}')
      .patch(patch('src/b.ts'), 'apply_patch verification failed: Failed to find expected lines')
      .call(
        'shell',
        { command: ['bash', '-lc', `apply_patch <<'END'\n${patch('src/c.ts')}\nEND`] },
        'Exit code: 0',
      )
    expect(ask('files', codex, files('- src/a.ts: edited', '- src/b.ts: edited'))).toEqual({
      right: ['/srv/shop/src/a.ts'],
      missing: ['/srv/shop/src/c.ts'],
      contradicted: ['edited: src/b.ts'],
    })
  })
})

describe('commands', () => {
  const log = new ClaudeLog()
    .bash('npm  test', 'Exit code 1\nboom', true)
    .bash('npm run lint', '', false)
    .bash('npm test', 'all good')
    .bash('echo `date`', 'today')

  it('have the status of their last call, whatever their whitespace', () => {
    const notes = workflow("- `echo 'date'` → ok, printed the day", '- `npm run lint` → failed')
    expect(ask('commands', log, notes)).toEqual({
      right: ['echo `date` → ok'],
      missing: ['npm test → ok'],
      contradicted: ['npm run lint → ok'],
    })
  })

  it('are found among the errors too, and a second line with another status contradicts', () => {
    const notes = `${workflow('- `npm test` → ok', '- `npm run lint` → ok')}\n${errors('- `npm test` → failed')}`
    expect(ask('commands', log, notes)).toMatchObject({
      right: ['npm run lint → ok'],
      contradicted: ['npm test → ok'],
    })
  })

  it('are judged by what the log says of them before anything that they print', () => {
    const log = new ClaudeLog().bash('gh run view 1 --log-failed', '##[error]exit code 1')
    expect(ask('commands', log, workflow())).toEqual({ missing: ['gh run view 1 --log-failed → ok'] })
  })

  it('are asked if among the newest twenty, or if still failing', () => {
    const long = new ClaudeLog().bash('again').bash('old ok').bash('old failure', 'oops\nexit code 3', true)
    for (let count = 1; count <= 19; count += 1) long.bash(`step ${count}`)
    long.bash('again')
    const { missing = [] } = ask('commands', long, workflow())
    expect(missing).toHaveLength(21)
    expect(missing).toEqual(expect.arrayContaining(['old failure → failed', 'again → ok']))
    expect(missing).not.toContain('old ok → ok')
  })

  it('of Codex that were still running end with a later look at them', () => {
    const codex = new CodexLog()
      .call('exec_command', { cmd: 'a' }, 'Process running with session ID 7\nOutput:\n')
      .call('exec_command', { cmd: 'b' }, 'Process running with session ID 8\nOutput:\n--- FAIL: One\n')
      .call('write_stdin', { session_id: 8 }, 'Process exited with code 1\nOutput:\nFAIL\n')
    expect(ask('commands', codex, errors('- `b` → failed'))).toEqual({
      right: ['b → failed'],
      undecided: ['a → undecided'],
    })
    expect(ask('commands', codex, workflow('- `b` → ok')).contradicted).toEqual(['b → failed'])
    expect(ask('tests', codex, errors('- failing test: One'))).toEqual({ right: ['One'] })
  })

  it('fail by an exit code in the first five or last three lines, not by one between', () => {
    const middle = ['1', '2', '3', '4', '5', 'exit code 7', '7', '8', '9'].join('\n')
    const codex = new CodexLog()
      .call(
        'exec_command',
        { cmd: 'a' },
        'Command: a\nChunk ID: 1\nWall time: 0\nProcess exited with code 2\nOutput:\n6\n7\n8\n9',
      )
      .call('exec_command', { cmd: 'b' }, '{"output":"x","metadata":{"exit_code":1}}')
      .call('exec_command', { cmd: 'c' }, middle)
      .call('shell', { command: ['bash', '-lc', 'd'] }, 'Exit code: 0')
    expect(ask('commands', codex, workflow()).missing).toEqual([
      'a → failed',
      'b → failed',
      'c → ok',
      'd → ok',
    ])
  })

  it('are undecided if nobody saw them end', () => {
    const unfinished = new ClaudeLog()
      .call('Bash', { command: 'a', run_in_background: true }, 'Command running in background with ID: 1')
      .call('Bash', { command: 'b' }, "The user doesn't want to proceed with this tool use.", {
        isError: true,
      })
      .call('Bash', { command: 'c' }, 'Command timed out after 2m 0s', { isError: true })
      .call('Bash', { command: 'd' }, 'part', { fields: { toolUseResult: { interrupted: true } } })
    const codex = new CodexLog().call(
      'exec_command',
      { cmd: 'e' },
      'Chunk ID: 1\nProcess running with session ID 4',
    )
    expect(ask('commands', unfinished, workflow()).undecided).toHaveLength(4)
    expect(ask('commands', codex, workflow('- `e` → ok'))).toEqual({ undecided: ['e → undecided'] })
  })

  it('may be cut to 120 characters; a cut line contradicts only if no command that begins so has its status', () => {
    const start = `node ${'x'.repeat(150)}`
    const cut = `- \`${start.slice(0, 120)}…\``
    const two = new ClaudeLog().bash(`${start} one`).bash(`${start} two`, 'no', true)
    expect(ask('commands', two, workflow(`${cut} → ok`, `${cut} → failed`)).right).toHaveLength(2)
    expect(ask('commands', two, workflow(`${cut} → ok`))).toEqual({
      right: [`${start} one → ok`],
      missing: [`${start} two → failed`],
    })
    const longer = `- \`${start.slice(0, 140)}…\` → ok`
    expect(ask('commands', two, workflow(longer)).right).toEqual([`${start} one → ok`])
    expect(ask('commands', two, workflow(longer.replace('xx', 'y'))).missing).toHaveLength(2)
    const one = new ClaudeLog().bash(`${start} one`)
    expect(ask('commands', one, workflow(`${cut} → failed`)).contradicted).toHaveLength(1)
    expect(ask('commands', one, workflow(`- \`${start.slice(0, 80)}…\` → ok`)).missing).toHaveLength(1)
    expect(ask('commands', log, workflow('- `npm test…` → ok')).missing).toContain('npm test → ok')
    const open = one.call('Bash', { command: `${start} watch`, run_in_background: true })
    expect(ask('commands', open, workflow(`${cut} → failed`)).missing).toEqual([`${start} one → ok`])
  })

  it('are compared around redacted parts', () => {
    const secret = new ClaudeLog().bash('curl -H "x-api-key: abc123" https://api.shop')
    const line = (host: string) =>
      workflow(`- \`curl -H "x-api-key: [redacted api key]" https://${host}\` → ok`)
    expect(ask('commands', secret, line('api.shop')).right).toHaveLength(1)
    expect(ask('commands', secret, line('other.shop')).missing).toHaveLength(1)
  })
})

describe('failing tests', () => {
  const noted = (...names: string[]) => errors(...names.map((name) => `- failing test: ${name}`))

  it.each([
    ['pytest', 'FAILED tests/test_a.py::test_sum - assert 1 == 2', 'tests/test_a.py::test_sum'],
    ['Go', '    --- FAIL: TestCart/empty (0.01s)', 'TestCart/empty'],
    ['Go, a package', 'FAIL\tshop/cart [build failed]', 'shop/cart [build failed]'],
    ['TAP', 'not ok 3 - adds tax', 'adds tax'],
    ['Rust', 'test cart::adds ... FAILED', 'cart::adds'],
    ['vitest', ' FAIL  src/cart.test.ts > adds tax', 'src/cart.test.ts > adds tax'],
    ['jest', '  ✕ adds tax (12 ms)\nTests: 1 failed', 'adds tax'],
    ['colours', '\u001b[31m   × adds tax\u001b[39m 12ms\n1 failed', 'adds tax'],
  ])('are read from the output of %s', (_, output, name) => {
    const log = new ClaudeLog().bash('run the tests', output)
    expect(ask('tests', log, noted(name))).toEqual({ right: [name] })
    expect(ask('tests', log, noted('another'))).toEqual({ missing: [name], contradicted: ['another'] })
  })

  it.each([
    ['--- PASS: TestCart (0.01s)'],
    ['ok  \tshop/cart\t0.312s'],
    ['ok  \tshop/cart\t(cached)'],
    ['Tests  12 passed (12)'],
    ['test result: ok. 3 tests'],
    ['ok 1 - adds tax'],
  ])('are over with a newer run that printed %j', (output) => {
    const log = new ClaudeLog().bash('go test', '--- FAIL: TestCart').bash('go test', output)
    expect(ask('tests', log, noted('TestCart'))).toEqual({ contradicted: ['TestCart'] })
  })

  it('last while nothing newer printed a result: a file that was read is no run, and a cross of a linter no result', () => {
    const log = new ClaudeLog()
      .bash('go test', '--- FAIL: TestCart')
      .call('Read', { file_path: 'log.txt' }, '12 passed')
      .bash('npm run lint', '  × Formatter would have printed something else')
    expect(ask('tests', log, noted('TestCart'))).toEqual({ right: ['TestCart'] })
    const both = log.bash('make check', '--- FAIL: TestTax\n  × Formatter would have printed something else')
    expect(ask('tests', both, noted('TestTax'))).toEqual({ right: ['TestTax'] })
  })

  it('are undecided if no run printed a result', () => {
    expect(ask('tests', new ClaudeLog().bash('ls', 'a b'), noted('TestCart'))).toEqual({
      undecided: ['TestCart'],
    })
  })
})

it('takes the results of calls made side by side, though their parents are on different branches', () => {
  const assistant = (uuid: string, parentUuid: string | null, id: string, command: string) => ({
    uuid,
    parentUuid,
    type: 'assistant',
    message: { id: 'response', content: [{ type: 'tool_use', id, name: 'Bash', input: { command } }] },
  })
  const result = (uuid: string, parentUuid: string, id: string, isError: boolean) => ({
    uuid,
    parentUuid,
    type: 'user',
    message: { content: [{ type: 'tool_result', tool_use_id: id, content: 'x', is_error: isError }] },
  })
  const log = new ClaudeLog()
    .raw(assistant('a1', null, 'one', 'one'))
    .raw(assistant('a2', 'a1', 'two', 'two'))
    .raw(result('r2', 'a2', 'two', false))
    .raw(result('r1', 'a1', 'one', true))
  expect(ask('commands', log, workflow('- `one` → failed', '- `two` → failed'))).toEqual({
    right: ['one → failed'],
    contradicted: ['two → ok'],
  })
})
