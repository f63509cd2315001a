import { joinPlacing } from '../../members/placing-member.ts'
import { answerCalls, readOptions } from './answer.ts'

// A process that joins a large cluster, and measures how long that blocks it.

const { redisUrl } = readOptions()

answerCalls(
  { port: 0 },
  {
    async join() {
      const { joinMs, emptyMs } = await joinPlacing(redisUrl)
      return { joinMs, emptyMs }
    },
  },
)
