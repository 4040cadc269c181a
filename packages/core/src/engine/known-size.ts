/** What is known of the size of requests, to go on from. */
import type { Front } from '../prompt/front.ts'
import type { MediaTally } from '../prompt/media.ts'

export interface KnownSize {
  readonly tally: MediaTally
  readonly front: Front | null
  readonly around: number
}
