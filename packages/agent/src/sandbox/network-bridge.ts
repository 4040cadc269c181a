/**
 * Runs inside the sandbox, before the command: takes connections on a port of the sandbox's own loopback network, passes
 * them through two named pipes to the proxy outside (as streams of one HTTP/2 connection), and runs the command. Named
 * pipes, because commands cannot open Unix sockets. It imports nothing of the package: only this file is there.
 *
 * Arguments: the folder of the pipes, the port, the command.
 */
import { spawn } from 'node:child_process'
import { constants, openSync } from 'node:fs'
import { connect } from 'node:http2'
import { createServer, Socket } from 'node:net'
import { constants as system } from 'node:os'
import { join } from 'node:path'
import { Duplex } from 'node:stream'

const [folder = '', port = '', program = '', ...args] = process.argv.slice(2)
const { O_RDONLY, O_WRONLY, O_NONBLOCK } = constants
const readable = new Socket({ fd: openSync(join(folder, 'down'), O_RDONLY | O_NONBLOCK), writable: false })
const writable = new Socket({ fd: openSync(join(folder, 'up'), O_WRONLY | O_NONBLOCK), readable: false })
const session = connect('http://proxy', { createConnection: () => Duplex.from({ readable, writable }) })
session.on('error', () => undefined)

/** Maximum connections at once; further ones wait. The proxy refuses more than a hundred. */
const MAX_OPEN = 64
const waiting: Socket[] = []
let open = 0

const server = createServer({ allowHalfOpen: true }, (connection) => {
  connection.on('error', () => undefined)
  waiting.push(connection)
  passNext()
})

function passNext(): void {
  const connection = open < MAX_OPEN ? waiting.shift() : undefined
  if (connection === undefined) return
  open += 1
  const stream = session.request({ ':method': 'CONNECT', ':authority': 'proxy' })
  connection.on('close', () => stream.close())
  stream.on('error', () => connection.destroy())
  stream.on('close', () => {
    open -= 1
    passNext()
  })
  connection.pipe(stream).pipe(connection)
}

server.listen(Number(port), '127.0.0.1', () => {
  const command = spawn(program, args, { stdio: 'inherit' })
  command.on('error', (error) => {
    process.stderr.write(`${error.message}\n`)
    process.exit(127)
  })
  command.on('exit', (code, signal) =>
    process.exit(code ?? 128 + (signal === null ? 0 : system.signals[signal])),
  )
})

// Signals to the process group are handled by the command, so the bridge ignores them.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined)
