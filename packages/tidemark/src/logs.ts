export { readLog } from './logs/read-session.ts'
