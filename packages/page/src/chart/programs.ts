/** Names of the programs whose logs the page shows. */
import type { PageReport } from 'tidemark/report'

export const PROGRAMS: Readonly<Record<PageReport['format'], string>> = {
  'claude-code': 'Claude Code',
  codex: 'Codex',
  tidemark: 'Tidemark',
}
