export type { Terminal } from '@tidemark/terminal/terminal'
export { main, run } from './commands/main.ts'
