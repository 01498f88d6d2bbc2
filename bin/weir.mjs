#!/usr/bin/env node
import { join } from 'node:path'
import { ensureInstalled, root, runAndExit } from '../scripts/bootstrap.mjs'

ensureInstalled({ development: false })
runAndExit([join(root, 'src', 'main.ts'), ...process.argv.slice(2)])
