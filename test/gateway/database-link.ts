/** A connection to Postgres that a test can cut: for the gateway it falls silent, while Postgres sees its end. */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

export interface DatabaseLink {
  /** The address of the database by this link. */
  readonly url: string
  /** Postgres sees the end of all connections; the gateway sees neither an end nor an answer, also on new ones. */
  cut(): void
  /** What was cut ends now; new connections work again. */
  heal(): void
  close(): Promise<void>
}

export async function startDatabaseLink(database: string): Promise<DatabaseLink> {
  const target = new URL(database)
  const gateways = new Set<Socket>()
  const servers = new Set<Socket>()
  let isCut = false
  const forget = (set: Set<Socket>, socket: Socket, other: Socket): void => {
    set.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => {
      set.delete(socket)
      if (!isCut) other.destroy()
    })
  }
  const link = createServer((gateway) => {
    if (isCut) {
      gateways.add(gateway.on('error', () => {}))
      return
    }
    const server = connect(Number(target.port), target.hostname)
    forget(gateways, gateway, server)
    forget(servers, server, gateway)
    gateway.on('data', (data) => void (isCut || server.write(data)))
    server.on('data', (data) => void (isCut || gateway.write(data)))
  }).listen(0, '127.0.0.1')
  await once(link, 'listening')
  const address = link.address()
  const url = new URL(database)
  url.port = String(typeof address === 'object' ? address?.port : '')
  const endAll = (sockets: Set<Socket>): void => {
    for (const socket of sockets) socket.destroy()
  }
  return {
    url: url.href,
    cut() {
      isCut = true
      endAll(servers)
    },
    heal() {
      isCut = false
      endAll(gateways)
    },
    async close() {
      link.close()
      endAll(gateways)
      endAll(servers)
    },
  }
}
