"""Judgements of people: tasks from a scored run, projects for Label Studio, and the analysis of
answers.
"""
