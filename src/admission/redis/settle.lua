-- Takes away what is due and admits whoever fits. Nothing depends on it: every other script does the same.
settle()
save()
return 1
