/** A process whose main thread never answers again, as after a fault in a loop. Arguments: `screen` to set raw mode. */
import { startWatchdog } from '../src/threads/watchdog.ts'

const isOnScreen = process.argv[2] === 'screen'
if (isOnScreen) process.stdin.setRawMode(true)
process.on('SIGTERM', () => undefined)
const watchdog = startWatchdog({ resumeCommand: 'tidemark chat --resume abc', isOnScreen, limitMs: 1_500 })
watchdog.report('waiting for the model …')
// The main thread answers for longer than the limit: that alone must not end the process.
setTimeout(() => {
  console.log('still here')
  watchdog.report('Grep needle')
  for (;;);
}, 2_500)
