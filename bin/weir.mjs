#!/usr/bin/env node
import { join } from 'node:path'
import { ensureInstalled, root, runAndExit, runtimeFlags } from '../scripts/bootstrap.mjs'
import { ensureConsole } from '../scripts/build-console.mjs'

ensureInstalled({ development: false })
const isService = process.argv[2] === 'serve'
if (isService) ensureConsole()
runAndExit([join(root, 'src', 'main.ts'), ...process.argv.slice(2)], isService ? runtimeFlags : [])
