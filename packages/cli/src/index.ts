export { main, run } from './commands/main.ts'
export type { Terminal } from './terminal.ts'
