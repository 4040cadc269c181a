/** Commands in the sandbox with a list of domains: what they reach, and what they do not. */
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createSeatbeltProfile } from '../src/sandbox/mount-plan.ts'
import { openSandbox, type PreventedActions } from '../src/sandbox/sandbox.ts'
import { createHostCheck, parseListedHost } from '../src/tools/listed-hosts.ts'
import { bash, openSandboxWorld, sandboxProblem } from './sandbox-world.ts'

/** Serves on the loopback network of this machine. Returns the port, and the requests that came. */
async function serve() {
  const requests: Pick<IncomingMessage, 'url' | 'headers' | 'method'>[] = []
  const server = createServer((request, response) => {
    requests.push(request)
    let size = 0
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
    })
    if (request.url === '/large') return void response.end(Buffer.alloc(20_000_000, 'x'))
    request.on('end', () => response.end(`${request.method} ${request.url} ${size}\n`))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, requests }
}

/** Runs commands in a sandbox that resolves every name to the loopback network. */
async function openNetwork(domains: readonly string[], address = '127.0.0.1') {
  const root = mkdtempSync(join(tmpdir(), 'tidemark-network-'))
  const [folder, ownFolder] = [join(root, 'project'), join(root, 'own')]
  for (const each of [folder, ownFolder]) mkdirSync(each)
  onTestFinished(() => rmSync(root, { recursive: true, force: true, maxRetries: 10 }))
  const check = createHostCheck(domains, async () => [address])
  const opened = await openSandbox({
    ...{ folder, ownFolder, places: new Map(), guards: { isReadOnly: () => false }, hasNetwork: false },
    hosts: { listed: domains, check },
  })
  if (!opened.ok) throw new Error(opened.why)
  return async (command: string): Promise<{ readonly out: string } & PreventedActions> => {
    const run = await opened.sandbox.enter()
    const [program, args] = run.wrap('sh', ['-c', `exec 2>&1; ${command}`])
    const { stdout } = await promisify(execFile)(program, args, { cwd: folder }).catch(
      (error: { stdout: string }) => error,
    )
    return { out: stdout, ...(await run.leave()) }
  }
}

const CURL = 'curl -sS -m 120'

describe.skipIf(sandboxProblem !== null)('a command in the sandbox with a list of domains', () => {
  it('reaches a listed host by HTTP and through a tunnel, and no other', async () => {
    const { port, requests } = await serve()
    const run = await openNetwork([`good.test:${port}`, `*.below.test:${port}`, `127.0.0.1:${port}`])
    const listed = await run(
      [
        `${CURL} http://good.test:${port}/plain -d hello`,
        `${CURL} -p http://good.test:${port}/tunnel`,
        `${CURL} http://GOOD.test.:${port}/dot`,
        `${CURL} http://a.b.below.test:${port}/below`,
      ].join('; '),
    )
    expect(listed).toEqual({
      out: 'POST /plain 5\nGET /tunnel 0\nGET /dot 0\nGET /below 0\n',
      ...{ moved: [], refusals: [] },
    })
    const others = await run(
      [
        `${CURL} http://evil.test:${port}/`,
        `${CURL} -p http://evil.test:${port}/`,
        `${CURL} http://below.test:${port}/`,
        `${CURL} http://notgood.test:${port}/ http://good.test.evil.test:${port}/`,
        `${CURL} http://good.test:1/ http://good.test/`,
      ].join('; '),
    )
    expect(others.out).toContain(`host evil.test:${port} is not in sandbox.domains\n`)
    expect(others.refusals).toEqual([
      ...['evil.test', 'below.test', 'notgood.test', 'good.test.evil.test'].map(
        (host) => `host ${host}:${port} is not in sandbox.domains`,
      ),
      ...['host good.test:1 is not in sandbox.domains', 'host good.test is not in sandbox.domains'],
    ])
    expect(requests.map(({ url }) => url)).toEqual(['/plain', '/tunnel', '/dot', '/below'])
  })

  it('reaches nothing past the proxy, by name or by address', async () => {
    const { port, requests } = await serve()
    const run = await openNetwork([`good.test:${port}`, `127.0.0.1:${port}`])
    const { out } = await run(
      [
        `${CURL} --noproxy '*' http://127.0.0.1:${port}/`,
        `env -u http_proxy -u HTTP_PROXY -u ALL_PROXY -u all_proxy ${CURL} http://good.test:${port}/`,
        `${CURL} --noproxy '*' http://1.1.1.1/`,
      ].join('; '),
    )
    expect(out.match(/curl: \(\d+\)/g)).toEqual(['curl: (7)', 'curl: (6)', 'curl: (7)'])
    expect(requests).toEqual([])
  })

  it('does not reach another site of a server by the name of a listed one', async () => {
    const { port, requests } = await serve()
    const run = await openNetwork([`good.test:${port}`, `127.0.0.1:${port}`])
    await run(`${CURL} -H 'Host: other.test' http://good.test:${port}/`)
    expect(requests.map(({ headers }) => headers.host)).toEqual([`good.test:${port}`])
  })

  it.each([
    ['127.0.0.1', 'loopback'],
    ['169.254.169.254', 'the services of a cloud'],
    ['10.0.0.8', 'a private network'],
    ['::ffff:127.0.0.1', 'loopback, written as IPv6'],
  ])('does not reach %s (%s) by a listed name', async (address) => {
    const { port, requests } = await serve()
    const run = await openNetwork([`good.test:${port}`], address)
    const { out } = await run(`${CURL} http://good.test:${port}/`)
    expect(out).toBe(
      `host good.test:${port} has the address ${address} of a local network, which is not in sandbox.domains\n`,
    )
    expect(requests).toEqual([])
  })

  it('can send and receive much, over many connections, with programs that read the usual variables', async () => {
    const { port } = await serve()
    const run = await openNetwork([`good.test:${port}`, `127.0.0.1:${port}`])
    const url = `http://good.test:${port}`
    const { out } = await run(
      [
        `${CURL} ${url}/large | wc -c`,
        `head -c 20000000 /dev/zero | ${CURL} -T - ${url}/up`,
        `${CURL} -Z --parallel-max 150 '${url}/[1-150]' 2>/dev/null | wc -l`,
        `${process.execPath} -e 'fetch("${url}/node").then((r) => r.text()).then((t) => console.log(t.trim()))'`,
      ].join('; '),
    )
    expect(out).toBe('20000000\nPUT /up 20000000\n150\nGET /node 0\n')
  })

  it('keeps its exit code, its signals and its standard streams', async () => {
    const run = await openNetwork(['good.test'])
    expect((await run('exit 7; echo no')).out).toBe('')
    expect((await run('(exit 7); echo $?; kill -9 $$')).out).toBe('7\n')
    const world = await openSandboxWorld([bash('exit 7'), bash('kill -9 $$')], { domains: ['good.test'] })
    const results = await world.runCommands()
    expect(results).toEqual([
      expect.stringMatching(/^Exit code: 7\n/),
      expect.stringMatching(/^Exit code: 137\n/),
    ])
  })
})

describe.skipIf(sandboxProblem !== null)('through the chat', () => {
  it('the settings list the hosts, and the model reads which one was refused', async () => {
    const { port } = await serve()
    const domains = [`localhost:${port}`]
    const fetchWith = (url: string) =>
      bash(`env -u no_proxy -u NO_PROXY curl -sS -m 120 -o out.txt -w '%{http_code}\\n' ${url}; cat out.txt`)
    const world = await openSandboxWorld(
      [fetchWith(`http://localhost:${port}/a`), fetchWith('http://registry.example/x')],
      { domains },
    )
    expect(await world.runCommands()).toEqual([
      '200\nGET /a 0',
      '403\nhost registry.example is not in sandbox.domains\n[The sandbox refused a connection: host registry.example is not in sandbox.domains. With outside: true the user is asked.]',
    ])
  })

  it.each([
    [['*']],
    [['https://example.com']],
    [['example.com/path']],
    [['example.com:0']],
    [['*.10.0.0.1']],
    [['']],
    ['example.com'],
  ])('a list like %j is refused', async (domains) => {
    const world = await openSandboxWorld(['Done.'], { domains })
    expect((await world.run('chat', '-p', 'Work.')).err).toMatch(/settings\.json sandbox: expected/)
  })

  it('a list beside an open network is refused', async () => {
    const world = await openSandboxWorld(['Done.'], { network: true, domains: ['example.com'] })
    expect((await world.run('chat', '-p', 'Work.')).err).toMatch(/either network: true or a list of domains/)
  })
})

it('entries are names, names below another, and addresses, each with a port or the usual ones', () => {
  const usual = [80, 443]
  expect(parseListedHost('Registry.npmjs.org')).toEqual({
    host: 'registry.npmjs.org',
    isBelow: false,
    ports: usual,
  })
  expect(parseListedHost('*.example.com')).toEqual({ host: 'example.com', isBelow: true, ports: usual })
  expect(parseListedHost('[::1]:8080')).toEqual({ host: '::1', isBelow: false, ports: [8080] })
  expect(parseListedHost('bücher.example')).toEqual({
    host: 'xn--bcher-kva.example',
    isBelow: false,
    ports: usual,
  })
})

it('on macOS only the port of the proxy is open', () => {
  const plan = { places: new Map(), tempFolder: '/t', hasNetwork: false }
  const profile = createSeatbeltProfile({ ...plan, entrance: { port: 4711, folder: null } })
  expect(profile).toContain('(deny network*)\n(allow network-outbound (remote ip "localhost:4711"))\n')
  expect(createSeatbeltProfile(plan)).not.toContain('allow network')
})
