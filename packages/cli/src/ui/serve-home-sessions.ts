/** Serves the page beside another command: `watch --ui` and `chat --ui` use it for the sessions in Tidemark's home. */
import { join } from 'node:path'
import { findNamedLogs } from 'tidemark/internal'
import { type PageServer, servePage } from './page-server.ts'
import { PageSessionStore } from './page-session-store.ts'
import { createPageUndo, type UndoInProcess } from './page-undo.ts'

interface HomeSessionsOptions {
  readonly home: string
  readonly timeZone: string | undefined
  /** Given by a command that itself has sessions open, which it alone can change. */
  readonly undoHere?: UndoInProcess
}

const MAX_SESSIONS = 20

/** Serves Tidemark's own newest sessions. New sessions appear while the page is open. */
export async function serveHomeSessions({
  home,
  timeZone,
  undoHere,
}: HomeSessionsOptions): Promise<PageServer> {
  const store = new PageSessionStore({
    find: async () => {
      const { logs } = await findNamedLogs([join(home, 'sessions')])
      return {
        logs: logs.slice(0, MAX_SESSIONS),
        unreadable: [],
        unread: Math.max(0, logs.length - MAX_SESSIONS),
      }
    },
    undo: createPageUndo(home, undoHere),
    timeZone,
  })
  await store.start()
  return servePage({ store })
}
