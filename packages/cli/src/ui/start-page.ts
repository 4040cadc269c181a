/** Starts the page beside another command: `watch --ui` and `chat --ui` serve the sessions of Tidemark's home with it. */
import { join } from 'node:path'
import { findNamedLogs } from 'tidemark/internal'
import { type PageServer, servePage } from './page-server.ts'
import { createClosedSessionUndo, type UndoHere } from './page-undo.ts'
import { SessionStore } from './session-store.ts'

interface OwnPageOptions {
  readonly home: string
  readonly timeZone: string | undefined
  /** Given by a command that has sessions open itself. */
  readonly undoHere?: UndoHere
}

const MAX_SESSIONS = 20

/** Serves the newest sessions of Tidemark itself. New ones are found while the page is open. */
export async function serveOwnPage({ home, timeZone, undoHere }: OwnPageOptions): Promise<PageServer> {
  const store = new SessionStore({
    find: async () => {
      const { logs } = await findNamedLogs([join(home, 'sessions')])
      return {
        logs: logs.slice(0, MAX_SESSIONS),
        unreadable: [],
        unread: Math.max(0, logs.length - MAX_SESSIONS),
      }
    },
    undo: createClosedSessionUndo(home, undoHere),
    timeZone,
  })
  await store.start()
  return servePage({ store })
}
