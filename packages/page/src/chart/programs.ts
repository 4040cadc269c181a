/** Names of the programs whose logs the page shows. */
import type { PageSessionReport } from 'tidemark/report'

export const PROGRAM_NAMES: Readonly<Record<PageSessionReport['format'], string>> = {
  'claude-code': 'Claude Code',
  codex: 'Codex',
  tidemark: 'Tidemark',
}
