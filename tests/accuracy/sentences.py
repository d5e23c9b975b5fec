"""Pairs of English sentences from templates: paraphrases, near misses and strangers."""
from task import random_of

WHO = """the old teacher|a young doctor|my neighbour|the captain of the ship|our new manager|two tired students|the minister
of finance|a famous violinist|the baker on the corner|his younger sister|the chief engineer|a group of tourists|the night
guard|an experienced lawyer|the research team|a retired pilot""".replace("\n", " ").split("|")
WHERE = """in the library|at the railway station|near the river|in a small village|on the top floor|behind the museum|at the
airport|in the middle of the city|beside the old bridge|in the hospital|at the summer festival|in the laboratory""".replace(
    "\n", " ").split("|")
WHEN = """yesterday evening|last winter|early in the morning|two weeks ago|after the meeting|during the holidays|on Monday|
before sunrise|at the end of the year|right after lunch""".replace("\n", "").split("|")
DEEDS = [  # (one way to say it, another way)
    ("repaired the broken engine", "fixed the motor that did not work"),
    ("lost a leather wallet", "could not find a purse made of leather"),
    ("bought a second-hand car", "purchased a used automobile"),
    ("wrote a long letter to the newspaper", "sent the paper a lengthy letter"),
    ("played chess for hours", "spent a long time at a game of chess"),
    ("cooked soup for everyone", "prepared a hot meal of soup for all"),
    ("watched the football match", "looked at the soccer game"),
    ("complained about the noise", "was unhappy that it was so loud"),
    ("discovered a rare plant", "found a flower that hardly ever grows"),
    ("cancelled the flight to Madrid", "called off the trip by plane to Spain"),
    ("signed the rental contract", "put a name under the lease"),
    ("trained a neural network", "taught a machine learning model"),
    ("invested money in solar energy", "put savings into power from the sun"),
    ("painted the kitchen blue", "gave the walls where they cook a blue colour"),
    ("missed the last train", "arrived too late for the final train"),
    ("adopted a small dog", "took a puppy home"),
    ("ordered twenty copies of the report", "asked for the report in twenty copies"),
    ("measured the temperature of the water", "checked how warm the water was"),
]
FRAMES = ["{who} {deed} {where} {when}.", "{when}, {who} {deed} {where}.", "{where}, {who} {deed} {when}.",
          "Did you hear that {who} {deed} {when}?", "It is true that {who} {deed} {where}.", "{who} {deed}.",
          "I was told that {when} {who} {deed}, of all places {where}."]


def say(random, who, deed, where, when):
    text = random.choice(FRAMES).format(who=who, deed=deed, where=where, when=when)
    return text[0].upper() + text[1:]


def pair(split, index):
    """Two sentences that share as much as the kind of the pair says."""
    random = random_of("pair", split, index)
    (one, other), (foreign, _) = random.sample(DEEDS, 2)
    who, stranger = random.sample(WHO, 2)
    where, elsewhere = random.sample(WHERE, 2)
    when, later = random.sample(WHEN, 2)
    first = say(random, who, one, where, when)
    second = {
        0: lambda: say(random, who, other, where, when),
        1: lambda: say(random, stranger, other, elsewhere, when),
        2: lambda: say(random, who, foreign, where, when),
        3: lambda: say(random, stranger, one, where, later),
        4: lambda: say(random, stranger, foreign, elsewhere, later),
        5: lambda: say(random, who, one, elsewhere, later),
    }[index % 6]()
    return first, second
